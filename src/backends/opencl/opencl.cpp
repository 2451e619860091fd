#include "backends/opencl/opencl.h"

#include <fmt/format.h>

#include "backends/opencl/executable.h"
#include "inst/fused.h"
#include "support/quote.h"

namespace aglow {

Result<std::shared_ptr<const OpenClBackend>> OpenClBackend::create(std::string_view choice,
                                                                   std::optional<codegen::DeviceShape> asked) {
  AGLOW_TRY(opencl::Device device, opencl::chooseDevice(choice));
  if (!device.doubles)
    return Error{.code = Code::Device,
                 .message = fmt::format("the OpenCL device {} ({}) has no f64 (cl_khr_fp64), in which sums are taken",
                                        device.address(), quoted(device.name))};
  const codegen::DeviceShape shape{.sharesLocal = (device.type & opencl::kTypeCpu) == 0,
                                   .groupItems = static_cast<int64_t>(device.groupItems),
                                   .localBytes = static_cast<int64_t>(device.localBytes)};
  return std::shared_ptr<const OpenClBackend>(new OpenClBackend(std::move(device), asked.value_or(shape)));
}

static Decision runs(const OpDef& op) {
  if (op.kind == OpKind::Derivative) return Decision::no(fmt::format("{} stands for other nodes", op.name));
  if (op.kind == OpKind::Composite) return Decision::no(fmt::format("{} is composed of others", op.name));
  if (op.kind == OpKind::View || op.kind == OpKind::Storage) return Decision::yes();
  return codegen::hasKernel(op);
}

Decision OpenClBackend::supports(const Node& node) const { return runs(node.def()); }

Result<std::optional<Plan>> OpenClBackend::plan(const Program& program, const Instr& instr) const {
  for (const Instr& step : bodyOf(instr))
    if (const Decision taken = runs(step.attrs.op()); !taken)
      return Error{.code = Code::UnsupportedFeature, .message = taken.reason()};
  return std::optional(
      Plan{.kernel = codegen::kernelName(program, instr), .scratchBytes = codegen::scratchBytes(program, instr)});
}

void OpenClBackend::changePhases(PhaseList& phases) const {
  phases.insertAfter("irgen", planPhase());
  phases.insertAfter("plan", fusePhase(fusing_));
}

Result<std::unique_ptr<Executable>> OpenClBackend::compile(std::vector<Program> programs,
                                                           const BackendOptions& options) const {
  AGLOW_OK(checkMemory(programs, options));
  return opencl::makeExecutable(std::move(programs), device_, shape_, options);
}

}  // namespace aglow
