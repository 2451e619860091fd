// Modules as a pair of files.
#include <filesystem>

#include "graph/text.h"
#include "support/file.h"

namespace aglow {

namespace {

std::string blobsBeside(const std::string& path) {
  constexpr std::string_view kEnding = ".graph";
  return path.ends_with(kEnding) ? path.substr(0, path.size() - kEnding.size()) + ".blobs" : path + ".blobs";
}

}  // namespace

Status writeModule(const std::string& path, const Module& module) {
  BlobStore blobs;
  const std::string text = print(module, &blobs);
  // The blobs come first: a text never stands there without them.
  if (!blobs.tensors().empty()) AGLOW_OK(writeBlobs(blobsBeside(path), blobs));
  return writeFileAtomically(path, std::as_bytes(std::span(text)));
}

Result<std::unique_ptr<Module>> readModule(const std::string& path) {
  AGLOW_TRY(const SharedBytes file, mapFile(path));
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
