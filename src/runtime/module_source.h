// Modules as networks for a host: whole, each function one part.
#pragma once

#include <memory>
#include <span>

#include "compile/compile.h"
#include "runtime/parts.h"

namespace aglow {

// What a function takes and gives, as a host shows it.
NetworkSpec specOf(const Interface& interface);

// What a function that is compiled needs.
PartCost costOf(const Compilation& compilation, size_t function);
// Whether some program changes what stays.
bool hasState(std::span<const Program> programs);
// A function of what is compiled, to be loaded any number of times.
std::shared_ptr<CompiledPart> compiledPart(Compilation compilation, size_t function);
// A network of a single part.
PartGraph wholeGraph(const NetworkSpec& spec, PartCost cost, bool hasState);

// The only function, or that named main, of what is compiled already, for the backend that it was compiled for. Usage
// where there is no such function; UnsupportedFeature for devices of other backends.
Result<std::shared_ptr<const NetworkSource>> sourceOf(Compilation compilation);

}  // namespace aglow
