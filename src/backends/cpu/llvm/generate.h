// From a placed program to files of machine code, without a trace of LLVM in the interface.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/bundle/bundle.h"
#include "backends/cpu/code/memory_map.h"
#include "backends/cpu/code/run_time.h"
#include "backends/cpu/llvm/target.h"
#include "inst/program.h"

namespace aglow::codegen {

struct CodeOptions {
  std::string name = "model";  // of the function, after which its parts are named
  bool threads = false;        // steps go through RunTime::parallelFor
  bool observed = false;       // RunTime::observe is called for each instruction
  bool apart = false;          // each instruction keeps a function of its own, named after its node
};

// The programs of a module as object files. For each program they define `int32_t ENTRY(std::byte* const* bases, const
// RunTime*)`: one address per base of the program's memory map. That gives 0, or the number of the instruction that
// failed, shifted by kStatusBits, with its status. UnsupportedCode where LLVM gives up.
//
// Steps are dealt out to several objects by what the programs are, and these are written side by side.
using SideBySide = std::function<void(int64_t count, const std::function<void(int64_t index)>& each)>;
Result<std::vector<std::string>> generateObjects(std::span<const Program> programs, std::span<const MemoryMap> memory,
                                                 const Target& target, const CodeOptions& options,
                                                 const SideBySide& sideBySide);
// The name of a program's function in them.
std::string entryName(const CodeOptions& options, size_t program);

// The code of a bundle, once for each kind of file.
enum class CodeFile { Object, Assembly, Llvm };
Result<std::vector<std::string>> generateBundle(const Bundle& bundle, const Target& target,
                                                std::span<const CodeFile> files);
// Instructions beyond the triple's base that the code may use and that a bundle can look for, by LLVM's names.
std::vector<std::string> checkedFeatures(const Target& target);
// Those of a target of this machine's kind that the processor at hand does not have.
std::vector<std::string> missingFeatures(const Target& target);

}  // namespace aglow::codegen
