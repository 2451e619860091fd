// The machine that code is generated for: its triple, instruction set and caches.
#pragma once

#include <memory>
#include <string>

#include "backends/cpu/code/target_options.h"
#include "backends/cpu/kernels/plan.h"
#include "support/error.h"

namespace llvm {
class TargetMachine;
}

namespace aglow::codegen {

// What 64-bit Linux on RISC-V counts on.
inline constexpr const char* kRiscvBase = "+m,+a,+f,+d,+c";

class Target {
public:
  // Usage error where there is no such cpu or feature, or the target is not among those that are tested.
  static Result<Target> create(const TargetOptions& options);

  const TargetOptions& options() const { return options_; }
  llvm::TargetMachine& machine() const { return *machine_; }
  // With the defaults filled in.
  const std::string& triple() const { return triple_; }
  const std::string& cpu() const { return cpu_; }
  const std::string& features() const { return features_; }
  const cpu::Machine& shape() const { return shape_; }
  bool has(const std::string& feature) const;
  // Whether it is of this machine's kind; the processor may lack instructions all the same.
  bool isHost() const { return host_; }

private:
  Target() = default;
  Status find(const TargetOptions& options);

  TargetOptions options_;
  std::string triple_, cpu_, features_;
  std::shared_ptr<llvm::TargetMachine> machine_;  // knows how it ends, which takes LLVM
  cpu::Machine shape_;
  bool host_ = false;
};

}  // namespace aglow::codegen
