#include "backends/device/kernel_rules.h"

#include <fmt/format.h>

#include "inst/fused.h"

namespace aglow::device {

namespace {

Decision runs(const Attrs& attrs, const OperandTypes& types, const codegen::DeviceShape& shape) {
  const OpDef& op = attrs.op();
  if (op.kind == OpKind::Derivative) return Decision::no(fmt::format("{} stands for other nodes", op.name));
  if (op.kind == OpKind::View || op.kind == OpKind::Storage) return Decision::yes();
  return codegen::hasKernel(attrs, types, shape);
}

}  // namespace

Decision KernelRules::supports(const Node& node) const { return runs(node.attrs(), OperandTypes(node), shape_); }

Result<std::optional<Plan>> KernelRules::plan(const Program& program, const Instr& instr) const {
  for (const Instr& step : bodyOf(instr))
    if (const Decision taken = runs(step.attrs, OperandTypes(program, step), shape_); !taken)
      return Error{.code = Code::UnsupportedFeature, .message = taken.reason()};
  return std::optional(Plan{.kernel = codegen::kernelName(program, instr),
                            .scratchBytes = codegen::scratchBytes(program, instr, shape_)});
}

}  // namespace aglow::device
