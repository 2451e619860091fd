// What packages are made of and opened from, for those who keep them elsewhere than in one file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/code/executable.h"
#include "backends/cpu/package/package_file.h"
#include "compile/compile.h"
#include "graph/blobs.h"

namespace aglow {

// Text and code for one processor. Regions have the numbers that a reader of the text gives them, and code depends on
// these.
struct PackageVariant {
  std::string target;  // triple and processor
  std::string description, text, code;
  std::vector<Program> programs;  // as the text has them, with their plans
};
// Of programs for the CPU backend, with code generated on so many threads. Constants that are too large for the text go
// to the store.
Result<PackageVariant> makeVariant(const Compilation& compilation, BlobStore& blobs, int threads);

// They live as long as what they are made of.
void addParts(std::vector<PackagePart>& parts, const PackageVariant& variant, uint32_t number);
void addParts(std::vector<PackagePart>& parts, const BlobPieces& weights);

// A package that is mapped, with those of its weights that lie elsewhere.
Result<Compilation> openPackage(const std::shared_ptr<const PackageFile>& file, const BlobStore& elsewhere);

// Runs code that is there: found, or just generated.
std::shared_ptr<const Backend> runningCode(codegen::LoadedCode code, std::string target, bool found);

}  // namespace aglow
