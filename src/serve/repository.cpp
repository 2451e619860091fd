#include "serve/repository.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "support/quote.h"

namespace aglow::serve {

namespace {

namespace fs = std::filesystem;
using Models = std::map<std::string, ModelFiles>;

// Files of a folder that are taken for models; whoever names a file by itself may call it as they like.
bool looksLikeModel(const fs::path& path) {
  static const std::vector<std::string> kEndings = {".onnx", ".aglow", ".graph", ".ir"};
  return std::ranges::find(kEndings, path.extension().string()) != kEndings.end();
}

bool isNumber(const std::string& text) {
  return !text.empty() && text.size() < 19 && text.find_first_not_of("0123456789") == std::string::npos;
}

std::vector<fs::path> entriesOf(const fs::path& folder, std::error_code& fault) {
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, fault), end; !fault && it != end; it.increment(fault)) entries.push_back(*it);
  std::ranges::sort(entries);
  return entries;
}

Status add(Models& models, const std::string& name, const std::string& version, const fs::path& file) {
  if (models[name].emplace(version, file.string()).second) return {};
  return Error{.code = Code::Usage,
               .message = fmt::format("two models are named {}: {} and {}", aglow::quoted(name), models[name][version],
                                      file.string())};
}

// NAME/VERSION/FILE: the only model among the files of each folder that is named by a number.
Status addVersions(Models& models, const fs::path& folder, std::error_code& fault) {
  for (const fs::path& version : entriesOf(folder, fault)) {
    if (!fs::is_directory(version) || !isNumber(version.filename().string())) continue;
    std::vector<fs::path> files = entriesOf(version, fault);
    std::erase_if(files, [](const fs::path& file) { return !looksLikeModel(file); });
    if (files.empty()) continue;
    if (files.size() > 1)
      return Error{.code = Code::Usage,
                   .message = fmt::format("a version is one model, and there are {}", files.size()),
                   .where = version.string()};
    AGLOW_OK(add(models, folder.filename().string(), version.filename().string(), files.front()));
  }
  return {};
}

Status addFolder(Models& models, const fs::path& folder) {
  std::error_code fault;
  for (const fs::path& entry : entriesOf(folder, fault)) {
    if (fs::is_directory(entry)) {
      AGLOW_OK(addVersions(models, entry, fault));
    } else if (looksLikeModel(entry)) {
      AGLOW_OK(add(models, entry.stem().string(), "1", entry));
    }
  }
  if (!fault) return {};
  return Error{.code = Code::FileRead, .message = fault.message(), .where = folder.string()};
}

}  // namespace

Result<Repository> Repository::create(std::vector<std::string> paths) {
  Repository repository;
  repository.paths_ = std::move(paths);
  AGLOW_OK(repository.scan());
  return repository;
}

Result<Models> Repository::scan() const {
  Models models;
  for (const std::string& path : paths_) {
    std::error_code fault;
    if (fs::is_directory(path, fault)) {
      AGLOW_OK(addFolder(models, path));
    } else if (fs::exists(path, fault)) {
      AGLOW_OK(add(models, fs::path(path).stem().string(), "1", path));
    } else {
      return Error{.code = Code::FileRead, .message = "there is no such file or folder", .where = path};
    }
  }
  return models;
}

const std::string& latestOf(const ModelFiles& files) {
  const auto less = [](const auto& a, const auto& b) {
    const bool numbers = isNumber(a.first) && isNumber(b.first);
    return numbers ? std::stoll(a.first) < std::stoll(b.first) : a.first < b.first;
  };
  return std::ranges::max_element(files, less)->first;
}

}  // namespace aglow::serve
