// Between the marks of a program and the buffers of a placement.
#include "memory/place.h"

#include <algorithm>

#include "memory/placement.h"
#include "support/sizes.h"

namespace aglow {

namespace {

// With all buffers together below this, no sum of them overflows.
constexpr int64_t kMostBytes = int64_t{1} << 56;

std::vector<MemoryReport::Interval> intervalsOf(const Program& program) {
  std::vector<MemoryReport::Interval> intervals;
  std::vector<size_t> open(program.regions.size());
  for (int32_t at = 0; at < static_cast<int32_t>(program.instrs.size()); ++at) {
    const Instr& instr = program.instrs[static_cast<size_t>(at)];
    if (instr.kind != Instr::Kind::Alloc && instr.kind != Instr::Kind::Dealloc) continue;
    const RegionId id = instr.operands[0].region;
    if (instr.kind == Instr::Kind::Dealloc) {
      intervals[open[static_cast<size_t>(id)]].last = at;
      continue;
    }
    open[static_cast<size_t>(id)] = intervals.size();
    intervals.push_back({.region = id,
                         .first = at,
                         .last = at,
                         .offset = program[id].as<Allocated>()->offset,
                         .bytes = program[id].type.bytes()});
  }
  return intervals;
}

std::vector<Buffer> buffersOf(const std::vector<MemoryReport::Interval>& intervals) {
  std::vector<Buffer> buffers;
  buffers.reserve(intervals.size());
  for (const auto& interval : intervals)
    buffers.push_back({alignUp(interval.bytes, Program::kAlignment), interval.first, interval.last});
  return buffers;
}

}  // namespace

Status checkSizes(const Program& program) {
  int64_t sum = 0;
  for (const Region& region : program.regions) {
    if (region.as<Allocated>() == nullptr) continue;
    const int64_t bytes = region.type.bytes();
    sum += std::min(bytes, kMostBytes) + Program::kAlignment;
    if (bytes > kMostBytes || sum > kMostBytes)
      return Error{.code = Code::TooLarge,
                   .message = "the intermediate results need more memory than can be addressed"};
  }
  return {};
}

Result<bool> placeArena(Program& program) { return placeArena(program, 0); }

Result<bool> placeArena(Program& program, int64_t enough) {
  AGLOW_OK(checkSizes(program));
  const std::vector<MemoryReport::Interval> intervals = intervalsOf(program);
  const Placement placement = placeBuffers(buffersOf(intervals), enough);
  for (size_t i = 0; i < intervals.size(); ++i)
    program[intervals[i].region].as<Allocated>()->offset = placement.offsets[i];
  program.arenaBytes = placement.bytes;
  return true;
}

MemoryReport memoryReport(const Program& program) {
  MemoryReport report;
  report.buffers = intervalsOf(program);
  report.lowerBound = liveBytes(buffersOf(report.buffers));
  report.arenaBytes = program.placed() ? program.arenaBytes : 0;
  report.constantBytes = program.constantBytes();
  for (const RegionId id : program.inputs()) report.inputBytes += program[id].type.bytes();
  for (const RegionId id : program.outputs()) report.outputBytes += program[id].type.bytes();
  for (const Region& region : program.regions)
    if (region.isState()) report.stateBytes += region.type.bytes();
  return report;
}

}  // namespace aglow
