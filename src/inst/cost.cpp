// Costs of instructions, from the rules that the records name.
#include "inst/cost.h"

#include <algorithm>

#include "ops/work.h"

namespace aglow {

namespace {

double flopsIn(const Program& program, const Instr& instr) {
  double flops = 0;
  for (const Instr& part : instr.body) flops += flopsIn(program, part);
  if (instr.kind != Instr::Kind::Compute) return flops;
  std::vector<const Type*> in;
  for (const Operand& input : instr.inputs())
    in.push_back(input.region == kNoRegion ? nullptr : &program[input.region].type);
  return flopsOf(instr.attrs, in, program[instr.results()[0].region].type);
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
  return {.flops = flopsIn(program, instr), .bytes = bytesOf(program, instr)};
}

double microsecondsOf(const Cost& cost) { return roughTime(cost.flops, static_cast<double>(cost.bytes)); }

int threadsWorth(double microseconds) {
  // It takes about one to get work, and to say that it is done.
  constexpr double kWorthThread = 4;
  return static_cast<int>(std::clamp(microseconds / kWorthThread, 1., double{kMostThreads}));
}

}  // namespace aglow
