// The backend of portable C: kernels of codegen/clike as functions, for any C99 compiler. It writes bundles
// (bundle.h) and runs nothing.
#pragma once

#include "backends/backend.h"
#include "backends/device/kernel_rules.h"

namespace aglow {

class CSourceBackend final : public Backend {
public:
  static constexpr std::string_view kName = "c";
  // Rows and tiles that a kernel keeps lie on the stack: half of the local memory at most.
  static constexpr int64_t kStackBytes = 8 << 10;

  CSourceBackend();

  const codegen::DeviceShape& shape() const { return rules_.shape(); }
  std::string_view name() const override { return kName; }
  Decision supports(const Node& node) const override { return rules_.supports(node); }
  Result<std::optional<Plan>> plan(const Program& program, const Instr& instr) const override {
    return rules_.plan(program, instr);
  }
  void changePhases(PhaseList& phases) const override;
  const FusePolicy* fusePolicy() const override { return &rules_.fusing(); }
  using Backend::compile;
  // UnsupportedFeature.
  Result<std::unique_ptr<Executable>> compile(std::vector<Program> programs,
                                              const BackendOptions& options) const override;

private:
  device::KernelRules rules_;
};

}  // namespace aglow
