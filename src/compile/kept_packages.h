// Compiled models kept between processes: a package each, found by what it was compiled from. Large constants lie in
// files of their own, named by their bytes, so that models compiled for several sizes, or in parts, share them.
#pragma once

#include <optional>
#include <string>

#include "compile/compile.h"

namespace aglow {

// The hash of all that the code and constants of a module depend on: the graph or the programs with every byte of their
// constants, options, the processor, this build. Empty where nothing is to be kept.
std::string cacheKey(const Compilation& compilation, const CompileOptions& options);

// What is kept under the key: mapped, after every byte was looked at. Damaged files go.
std::optional<Compilation> findKept(const std::string& folder, const std::string& key);

// The programs ready to be run. What is compiled for this is kept where the compilation says, if that can be.
Result<std::unique_ptr<Executable>> loadAndKeep(Compilation compilation, const BackendOptions& options);

}  // namespace aglow
