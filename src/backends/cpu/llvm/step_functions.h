// The functions that do the instructions of a program. Those that differ in addresses alone share theirs.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "backends/cpu/llvm/generate.h"
#include "backends/cpu/llvm/steps.h"

namespace aglow::codegen {

class StepFunctions {
public:
  StepFunctions(llvm::Module& module, Library& library, const Program& program, const Target& target,
                const CodeOptions& options)
      : context_{module, library, target, program, kernels_}, options_(options) {}

  // Nothing for an instruction that does nothing when run. With CodeOptions::apart, nothing is shared.
  Steps of(const Instr& instr);
  // What addresses in the program's data are offsets from.
  const std::string& data() const { return kernels_.data; }
  // A rough time for one round of a step on one thread.
  double microseconds(const Instr& instr, const Step& step) const;
  // How many threads get a step of an instruction done sooner than fewer would.
  int threadsWorth(const Instr& instr, const Step& step) const;

private:
  struct Shared {
    Steps steps;
    std::vector<RegionId> order;  // the regions of the instruction that came first
  };

  Step moveOf(const Instr& copy);
  Steps emit(const Instr& instr, const std::string& name);

  EmitContext context_;
  const CodeOptions& options_;
  SharedKernels kernels_;
  std::unordered_map<std::string, Shared> shared_;
};

}  // namespace aglow::codegen
