#include "compile/text_files.h"

#include <filesystem>

#include "compile/packages.h"
#include "inst/text.h"
#include "inst/verifier.h"

namespace aglow {

namespace {

// NAME.blobs belongs to NAME.graph, which may stand in the same folder.
std::string blobsBeside(const std::string& path) { return path + ".blobs"; }

}  // namespace

bool isTextForm(std::string_view path) { return path.ends_with(".graph") || path.ends_with(".ir"); }

bool isWhole(std::string_view path) { return isTextForm(path) || isPackage(path); }

Status writeTextFile(const std::string& path, const std::string& text) {
  return writeFileAtomically(path, std::as_bytes(std::span(text)));
}

Status addPrograms(FileSet& files, const std::string& path, std::span<const Program> programs) {
  BlobStore blobs;
  const std::string text = print(programs, &blobs);
  if (!blobs.tensors().empty()) AGLOW_OK(addBlobs(files, blobsBeside(path), blobs));
  return files.add(path, text);
}

Status writePrograms(const std::string& path, std::span<const Program> programs) {
  return writeTogether([&](FileSet& files) { return addPrograms(files, path, programs); });
}

Result<std::vector<Program>> readPrograms(const std::string& path) {
  AGLOW_TRY(const SharedBytes file, readFile(path));
  BlobStore blobs;
  std::error_code ignored;
  if (std::filesystem::exists(blobsBeside(path), ignored)) {
    AGLOW_TRY(blobs, readBlobs(blobsBeside(path)));
  }
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  Result<std::vector<Program>> programs = parseVerified(text, blobs);
  if (!programs.ok()) return std::move(programs).error().at(path);
  return programs;
}

Result<std::vector<Program>> parseVerified(std::string_view text, const BlobStore& blobs) {
  AGLOW_TRY(std::vector<Program> programs, parsePrograms(text, blobs));
  // What a text says wrong is the text's fault, not that of a pass.
  if (const Status valid = verify(std::span<const Program>(programs)); !valid.ok())
    return Error{.code = Code::BadText, .message = valid.error().message, .where = valid.error().where};
  return programs;
}

}  // namespace aglow
