// The CPU backend: machine code through LLVM, for this machine (run at once) or another (as files).
#pragma once

#include "backends/backend.h"
#include "backends/cpu/fuse_policy.h"
#include "backends/cpu/llvm/target.h"

namespace aglow {

class CpuBackend : public Backend {
public:
  // Usage error where there is no such target.
  static Result<std::shared_ptr<const CpuBackend>> create(const codegen::TargetOptions& options);

  const codegen::Target& target() const { return target_; }
  // Usage where this machine cannot run its code.
  Status checkHost() const;
  // Whether AGLOW_PERF asks for functions that profilers can name.
  static bool isNamed();
  std::string_view name() const override { return "cpu"; }
  Decision supports(const Node& node) const override;
  Decision quantizes(const Node& product) const override;
  Result<std::optional<Plan>> plan(const Program& program, const Instr& instr) const override;
  void changePhases(PhaseList& phases) const override;
  const FusePolicy* fusePolicy() const override { return &fusing_; }
  using Backend::compile;
  Result<std::unique_ptr<Executable>> compile(std::vector<Program> programs,
                                              const BackendOptions& options) const override;

private:
  explicit CpuBackend(codegen::Target target) : target_(std::move(target)) {}

  codegen::Target target_;
  CpuFusePolicy fusing_;
};

}  // namespace aglow
