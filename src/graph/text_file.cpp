// Modules as a pair of files.
#include <filesystem>

#include "graph/text.h"

namespace aglow {

namespace {

std::string blobsBeside(const std::string& path) {
  constexpr std::string_view kEnding = ".graph";
  return path.ends_with(kEnding) ? path.substr(0, path.size() - kEnding.size()) + ".blobs" : path + ".blobs";
}

}  // namespace

Status addModule(FileSet& files, const std::string& path, const Module& module) {
  BlobStore blobs;
  const std::string text = print(module, &blobs);
  if (!blobs.tensors().empty()) AGLOW_OK(addBlobs(files, blobsBeside(path), blobs));
  return files.add(path, text);
}

Status writeModule(const std::string& path, const Module& module) {
  return writeTogether([&](FileSet& files) { return addModule(files, path, module); });
}

Result<std::unique_ptr<Module>> readModule(const std::string& path) {
  AGLOW_TRY(const SharedBytes file, readFile(path));
  BlobStore blobs;
  std::error_code ignored;
  if (const std::string beside = blobsBeside(path); std::filesystem::exists(beside, ignored)) {
    AGLOW_TRY(blobs, readBlobs(beside));
  }
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  Result<std::unique_ptr<Module>> module = parseModule(text, blobs);
  if (!module.ok()) return std::move(module).error().at(path);
  return module;
}

}  // namespace aglow
