// What backends have in common whose kernels come from codegen/clike: what they take, their plans, what they fuse.
#pragma once

#include <optional>

#include "backends/device/fuse_policy.h"
#include "codegen/clike/launch.h"
#include "graph/node.h"
#include "inst/plan.h"
#include "inst/program.h"
#include "support/decision.h"

namespace aglow::device {

class KernelRules {
public:
  explicit KernelRules(const codegen::DeviceShape& shape) : shape_(shape), fusing_(shape) {}

  const codegen::DeviceShape& shape() const { return shape_; }
  const DeviceFusePolicy& fusing() const { return fusing_; }
  // From now on these choose where a kernel can be written in several ways.
  void choose(const codegen::Ways& ways) { shape_.ways = &ways; }

  Decision supports(const Node& node) const;
  Result<std::optional<Plan>> plan(const Program& program, const Instr& instr) const;

private:
  codegen::DeviceShape shape_;
  DeviceFusePolicy fusing_;
};

}  // namespace aglow::device
