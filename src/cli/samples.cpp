#include "cli/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace aglow::cli {

namespace {

namespace fs = std::filesystem;

Result<std::vector<fs::path>> entriesOf(const std::string& folder) {
  std::error_code fault;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, fault), end; !fault && it != end; it.increment(fault))
    entries.push_back(it->path());
  if (fault)
    return Error{.code = Code::FileRead, .message = "the folder cannot be read: " + fault.message(), .where = folder};
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace

Result<std::vector<SampleFiles>> listSamples(const std::string& folder, const std::vector<std::string>& inputs) {
  AGLOW_TRY(const std::vector<fs::path> entries, entriesOf(folder));
  std::vector<SampleFiles> samples;
  for (const fs::path& entry : entries) {
    std::error_code ignored;
    SampleFiles sample{.name = entry.filename().string(), .inputs = {}};
    if (fs::is_directory(entry, ignored)) {
      for (const std::string& input : inputs)
        if (const fs::path file = entry / (input + ".npy"); fs::exists(file, ignored))
          sample.inputs.emplace_back(input, file.string());
    } else if (entry.extension() == ".npy" && inputs.size() == 1) {
      sample.inputs.emplace_back(inputs.front(), entry.string());
    }
    if (!sample.inputs.empty()) samples.push_back(std::move(sample));
  }
  if (!samples.empty()) return samples;
  return Error{
      .code = Code::BadBinding,
      .message = "the folder holds no samples",
      .where = folder,
      .hint = inputs.size() == 1
                  ? fmt::format("expected a .npy file for each sample, with a value of '{}'", inputs.front())
                  : fmt::format("expected a folder for each sample, with {}.npy", fmt::join(inputs, ".npy, "))};
}

}  // namespace aglow::cli
