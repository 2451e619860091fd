// The CPU backend: machine code through LLVM, for this machine (run at once) or another (as files).
#pragma once

#include "backends/backend.h"
#include "codegen/llvm/target.h"

namespace aglow {

class CpuBackend : public Backend {
public:
  CpuBackend() = default;
  explicit CpuBackend(codegen::TargetOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "cpu"; }
  Decision supports(const Node& node) const override;
  Result<std::unique_ptr<Executable>> compile(Program program, const BackendOptions& options) const override;

private:
  codegen::TargetOptions options_;
};

}  // namespace aglow
