#include "memory/latency_model.h"

#include <algorithm>

#include "inst/cost.h"

namespace aglow {

double LatencyModel::secondsOf(const Program& program, const Instr& instr) const {
  if (instr.isMarker() || instr.kind == Instr::Kind::CopyWait) return 0;
  const Cost cost = costOf(program, instr);
  return startSeconds + std::max(cost.flops / flopsPerSecond, static_cast<double>(cost.bytes) / bytesPerSecond);
}

double LatencyModel::copySeconds(int64_t bytes) const {
  return copyStartSeconds + static_cast<double>(bytes) / copyBytesPerSecond;
}

}  // namespace aglow
