// Costs of instructions, from the rules that the records name.
#include "inst/cost.h"

#include <algorithm>

#include "ops/costs.h"

namespace aglow {

namespace {

double perResult(const Program& program, const Instr& instr) {
  const OpDef& op = instr.attrs.op();
  if (op.kind == OpKind::Elementwise)
    return static_cast<double>(
        std::count_if(op.scalar.begin(), op.scalar.end(), [](const Term& t) { return t.op > Scalar::Const; }));
  if (op.cost == nullptr) return 0;
  std::vector<const Type*> in;
  for (const Operand& input : instr.inputs())
    in.push_back(input.region == kNoRegion ? nullptr : &program[input.region].type);
  return op.cost({.attrs = instr.attrs, .in = in, .out = program[instr.results()[0].region].type});
}

double flopsOf(const Program& program, const Instr& instr) {
  double flops = 0;
  for (const Instr& part : instr.body) flops += flopsOf(program, part);
  if (instr.kind != Instr::Kind::Compute) return flops;
  const auto results = static_cast<double>(program[instr.results()[0].region].type.elements());
  return perResult(program, instr) * results;
}

int64_t bytesOf(const Program& program, const Instr& instr) {
  int64_t bytes = 0;
  const bool picks = instr.kind == Instr::Kind::Compute && instr.attrs.op().picks;
  for (const Operand& operand : instr.operands) {
    if (operand.region == kNoRegion || operand.access == Access::Scratch) continue;
    int64_t size = program[operand.region].type.bytes();
    if (picks && operand.region == instr.inputs()[0].region)
      size = std::min(size, program[instr.results()[0].region].type.bytes());
    bytes += size;
  }
  return bytes;
}

}  // namespace

Cost costOf(const Program& program, const Instr& instr) {
  if (instr.isMarker() || instr.kind == Instr::Kind::CopyWait) return {};
  return {.flops = flopsOf(program, instr), .bytes = bytesOf(program, instr)};
}

double microsecondsOf(const Cost& cost) {
  constexpr double kFlops = 5e4, kBytes = 1e4;  // in a microsecond
  return cost.flops / kFlops + static_cast<double>(cost.bytes) / kBytes;
}

int threadsWorth(double microseconds) {
  // It takes about one to get work, and to say that it is done.
  constexpr double kWorthThread = 4;
  return static_cast<int>(std::clamp(microseconds / kWorthThread, 1., double{kMostThreads}));
}

}  // namespace aglow
