#include "backends/device/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "backends/state.h"
#include "inst/cost.h"
#include "inst/fused.h"
#include "support/quote.h"

namespace aglow::device {

// The last step of each batch, which is a kernel: copies are not waited for.
static void cutIntoBatches(Loaded& loaded) {
  constexpr int kMostSteps = 64;
  constexpr double kMicroseconds = 20e3;  // of one of today's processors
  int steps = 0;
  double time = 0;
  for (size_t i = 0; i < loaded.steps.size(); ++i) {
    Step& step = loaded.steps[i];
    if (i == 0 || loaded.steps[i - 1].instr != step.instr)
      time += microsecondsOf(costOf(loaded.program, loaded.program.instrs[step.instr]));
    ++steps;
    if ((steps < kMostSteps && time < kMicroseconds) || step.kind != Step::Kind::Kernel) continue;
    step.endsBatch = true;
    steps = 0;
    time = 0;
  }
}

// Nothing for what stays on the device.
static std::optional<Transfer> transferOf(const Program& program, const Instr& instr, std::span<const Extent> extents,
                                          const MemoryPlan& plan) {
  if (instr.kind != Instr::Kind::CopyStart && instr.kind != Instr::Kind::CopyWait) return {};
  const Extent &to = extents[static_cast<size_t>(instr.operands[0].region)],
               &from = extents[static_cast<size_t>(instr.operands[1].region)];
  const Place toPlace = plan.placeOf(program, to), fromPlace = plan.placeOf(program, from);
  const auto inHost = [&](const Place& place) { return plan.slots[place.slot].use == kHost; };
  if (inHost(toPlace) == inHost(fromPlace)) return {};
  const bool toDevice = inHost(fromPlace);
  const Extent& host = toDevice ? from : to;
  return Transfer{.toDevice = toDevice,
                  .place = toDevice ? toPlace : fromPlace,
                  .region = host.root,
                  .offset = static_cast<uint64_t>(host.begin),
                  .bytes = host.end - host.begin};
}

Loaded makeSteps(Program given, MemoryPlan& plan, KernelTexts& kernels, const codegen::DeviceShape& shape) {
  Loaded loaded{.program = std::move(given)};
  const Program& program = loaded.program;
  const std::vector<Extent> extents = program.extents();
  const SharedTurns::Use use = stateUse(program);
  loaded.readsState = use != SharedTurns::Use::None;
  loaded.writesState = use == SharedTurns::Use::Writes;
  const auto placeOf = [&](RegionId id) { return plan.placeOf(program, extents[static_cast<size_t>(id)]); };
  std::map<int64_t, size_t> underWay;  // by token
  for (size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    if (instr.isMarker()) continue;
    if (const std::optional<Transfer> transfer = transferOf(program, instr, extents, plan)) {
      const bool starts = instr.kind == Instr::Kind::CopyStart;
      if (starts) {
        underWay[instr.token] = loaded.transfers.size();
        loaded.transfers.push_back(*transfer);
      }
      loaded.steps.push_back(
          {.instr = i, .kind = starts ? Step::Kind::Start : Step::Kind::Wait, .transfer = underWay.at(instr.token)});
      continue;
    }
    if (instr.kind == Instr::Kind::CopyWait) continue;
    for (const codegen::Launch& launch : codegen::launchesOf(program, instr, shape)) {
      Step step{.instr = i, .kernel = kernels.add(launch.text)};
      for (size_t axis = 0; axis < 2; ++axis) {
        step.items[axis] = static_cast<size_t>(launch.items[axis]);
        step.group[axis] = static_cast<size_t>(launch.group[axis]);
      }
      for (const auto& [argument, offset] : launch.arguments) {
        if (argument == codegen::Launch::kFault) {
          if (loaded.checked.empty() || loaded.checked.back() != i) loaded.checked.push_back(i);
          step.arguments.push_back({MemoryPlan::kFaultSlot, (loaded.checked.size() - 1) * sizeof(Fault)});
        } else {
          step.arguments.push_back(placeOf(argument == codegen::Launch::kPredicate
                                               ? instr.predicate
                                               : instr.operands[static_cast<size_t>(argument)].region));
          step.arguments.back().offset += static_cast<uint64_t>(offset);
        }
        if (plan.slots[step.arguments.back().slot].use == kIo)
          loaded.ioArguments.emplace_back(loaded.steps.size(), step.arguments.size() - 1);
      }
      loaded.steps.push_back(std::move(step));
    }
  }
  cutIntoBatches(loaded);
  uint64_t& faultBytes = plan.slots[MemoryPlan::kFaultSlot].bytes;
  faultBytes = std::max<uint64_t>(faultBytes, loaded.checked.size() * sizeof(Fault));
  plan.buffers[kFaults].assign(1, faultBytes);
  return loaded;
}

std::string Loaded::nodeOf(size_t number) const {
  const Instr& instr = program.instrs[number];
  return fmt::format("node {} ({})", quoted(instr.origin), instrName(bodyOf(instr).front()));
}

std::vector<size_t> Loaded::computesF64(const KernelTexts& kernels) const {
  const auto hasF64 = [&](const Instr& instr) {
    return std::any_of(instr.operands.begin(), instr.operands.end(), [&](const Operand& operand) {
      return operand.region != kNoRegion && program[operand.region].type.kind() == ElemKind::Float64;
    });
  };
  std::vector<size_t> found;
  for (const Step& step : steps)
    if (step.kind == Step::Kind::Kernel && kernels.text(step.kernel).find("f64") != std::string::npos) {
      const std::span<const Instr> body = bodyOf(program.instrs[step.instr]);
      const bool own = std::any_of(body.begin(), body.end(), hasF64);
      if (own && (found.empty() || found.back() != step.instr)) found.push_back(step.instr);
    }
  return found;
}

Status Loaded::checkFaults(std::span<const Fault> seen) const {
  for (size_t i = 0; i < checked.size(); ++i) {
    if (seen[i].seen == 0) continue;
    const Instr& instr = bodyOf(program.instrs[checked[i]]).front();
    const Shape& data = program[instr.inputs()[0].region].type.shape();
    const auto& declared = instr.attrs.op().attrs;
    const bool chosen =
        std::any_of(declared.begin(), declared.end(), [](const AttrDef& attr) { return attr.name == "axis"; });
    const int64_t axis = chosen ? instr.attrs.integer("axis") : 0;
    return Error{.code = Code::RuntimeValue,
                 .message = fmt::format("index {} lies outside of axis {}, whose extent is {}", seen[i].index, axis,
                                        data[static_cast<int>(axis)])}
        .at(nodeOf(checked[i]));
  }
  return {};
}

}  // namespace aglow::device
