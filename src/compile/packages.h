// Packages: a compiled model as one file, ready to run. docs/packages.md has the format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compile/compile.h"
#include "support/file_set.h"

namespace aglow {

// Whether a path names a package, by its ending.
bool isPackage(std::string_view path);

// Adds the package of a model that was compiled by the CPU backend, once for each processor: of those that the machine
// at hand can run, the last one runs. UnsupportedFeature for functions that take or give anything but tensors and
// sequences of them.
Status addPackage(FileSet& files, const std::string& path, std::vector<Compilation> variants);

// The placed programs of a package, with a backend that runs its code: nothing is generated, weights are mapped.
// BadPackage where it is damaged, OtherPackage for another version's or other processors'.
Result<Compilation> openPackage(const std::string& path);

// What a package holds, for reports. All bytes are looked at, those of weights included.
struct PackageFacts {
  struct Variant {
    std::string target;  // triple and processor
    std::vector<std::string> features;
    int64_t codeBytes = 0;
    bool runsHere = false;
  };
  std::vector<Variant> variants;
  int64_t weightsBytes = 0;
};
Result<PackageFacts> inspectPackage(const std::string& path);

}  // namespace aglow
