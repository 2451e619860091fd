// Both IRs as files: NAME.graph or NAME.ir, with a file of blobs beside it for large constants.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/blobs.h"
#include "graph/module.h"
#include "inst/program.h"
#include "support/file_set.h"

namespace aglow {

// Whether a path names a text form, by its ending.
bool isTextForm(std::string_view path);
// Whether it names something that has its sizes and needs no import: a text form, or a package.
bool isWhole(std::string_view path);

// The programs of a module: the text and, when there are large constants, the file of blobs. Graphs have the same in
// graph/text.h.
Status addPrograms(FileSet& files, const std::string& path, std::span<const Program> programs);
Status writePrograms(const std::string& path, std::span<const Program> programs);
Result<std::vector<Program>> readPrograms(const std::string& path);
// The same of a text, whose blobs are at hand.
Result<std::vector<Program>> parseVerified(std::string_view text, const BlobStore& blobs);

Status writeTextFile(const std::string& path, const std::string& text);

}  // namespace aglow
