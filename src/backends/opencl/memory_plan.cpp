#include "backends/opencl/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "inst/banks.h"
#include "support/sizes.h"

namespace aglow::opencl {

static constexpr const char* kBufferNames[] = {"intermediate results", "weights", "state", "inputs and outputs",
                                               "faults of kernels"};

MemoryPlan::MemoryPlan(std::span<const Program> programs) {
  for (const Program& program : programs)
    bytes[kArena] = std::max(bytes[kArena], static_cast<uint64_t>(program.arenaBytes));
  const auto host = hostRegions(programs);
  for (const Region* region : sharedRegions(programs)) {
    if (host.contains(region->name)) {
      declared[region->name] = {kHost, 0};
      continue;
    }
    const BufferId buffer = region->as<ConstantInit>() != nullptr ? kWeights : region->isState() ? kState : kIo;
    declared[region->name] = {buffer, bytes[buffer]};
    bytes[buffer] += static_cast<uint64_t>(alignUp(region->type.bytes(), Program::kAlignment));
  }
}

Place MemoryPlan::placeOf(const Program& program, const Extent& extent) const {
  const Region& root = program[extent.root];
  const auto begin = static_cast<uint64_t>(extent.begin);
  if (const auto* allocated = root.as<Allocated>()) return {kArena, static_cast<uint64_t>(allocated->offset) + begin};
  const Place& place = declared.find(root.name)->second;
  return {place.buffer, place.offset + begin};
}

Status MemoryPlan::check(const Device& device) const {
  uint64_t all = 0;
  for (size_t i = 0; i < kBuffers; ++i) {
    all += bytes[i];
    if (bytes[i] > device.allocationBytes)
      return Error{
          .code = Code::TooLarge,
          .message = fmt::format("{} bytes are needed for {}; one buffer of the device {} ({}) has at most {}",
                                 bytes[i], kBufferNames[i], device.address(), device.name, device.allocationBytes)};
  }
  if (all > device.globalBytes)
    return Error{.code = Code::TooLarge,
                 .message = fmt::format("{} bytes are needed on the device {} ({}), which has {}", all,
                                        device.address(), device.name, device.globalBytes)};
  return {};
}

}  // namespace aglow::opencl
