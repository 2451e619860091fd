#include "backends/device/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "inst/banks.h"
#include "support/quote.h"
#include "support/sizes.h"

namespace aglow::device {

static uint64_t aligned(uint64_t bytes) {
  return static_cast<uint64_t>(alignUp(static_cast<int64_t>(bytes), Program::kAlignment));
}

std::pair<size_t, uint64_t> Packing::add(uint64_t bytes) {
  const uint64_t room = aligned(bytes);
  // What fits alone fits, though the bytes that align what would come after it do not.
  if (buffers.empty() || (buffers.back() > 0 && buffers.back() + room > bufferBytes)) buffers.push_back(0);
  const uint64_t offset = buffers.back();
  buffers.back() = std::max(offset + bytes, std::min(offset + room, bufferBytes));
  return {buffers.size() - 1, offset};
}

MemoryPlan::MemoryPlan(std::span<const Program> programs) {
  slots.push_back({.use = kArena, .name = "intermediate results"});
  slots.push_back({.use = kFaults, .name = "faults of kernels"});
  for (const Program& program : programs)
    slots[kArenaSlot].bytes = std::max(slots[kArenaSlot].bytes, static_cast<uint64_t>(program.arenaBytes));
  const auto host = hostRegions(programs);
  for (const Region* region : sharedRegions(programs)) {
    const bool constant = region->as<ConstantInit>() != nullptr;
    Slot& slot = add(*region, host.contains(region->name) ? kHost
                              : constant                  ? kWeights
                              : region->isState()         ? kState
                                                          : kIo);
    if (region->as<PlaceholderInit>() == nullptr) continue;
    slot.staged = stagingBytes;
    stagingBytes += aligned(slot.bytes);
  }
}

Slot& MemoryPlan::add(const Region& region, Use use) {
  declared[region.name] = slots.size();
  return slots.emplace_back(Slot{.use = use, .name = region.name, .bytes = static_cast<uint64_t>(region.type.bytes())});
}

Place MemoryPlan::placeOf(const Program& program, const Extent& extent) const {
  const Region& root = program[extent.root];
  const auto begin = static_cast<uint64_t>(extent.begin);
  if (const auto* allocated = root.as<Allocated>())
    return {kArenaSlot, static_cast<uint64_t>(allocated->offset) + begin};
  return {declared.find(root.name)->second, begin};
}

uint64_t MemoryPlan::bytesOf(Use use) const {
  uint64_t sum = 0;
  for (const Slot& slot : slots)
    if (slot.use == use) sum += aligned(slot.bytes);
  return sum;
}

uint64_t MemoryPlan::contextsIn(uint64_t bytes) const {
  const uint64_t shared = bytesOf(kWeights) + bytesOf(kState);
  const uint64_t each = std::max<uint64_t>(bytesOf(kArena) + bytesOf(kIo) + bytesOf(kFaults), 1);
  return bytes <= shared + each ? 1 : (bytes - shared) / each;
}

Status MemoryPlan::fit(const Limits& limits) {
  static constexpr const char* kNames[] = {"", "weights", "state", "inputs and outputs", ""};
  uint64_t all = 0;
  std::array<Packing, kUses> packings;
  packings.fill({.bufferBytes = limits.bufferBytes});
  for (Slot& slot : slots) {
    if (slot.use == kHost) continue;
    all += aligned(slot.bytes);
    if (slot.bytes > limits.bufferBytes)
      return Error{.code = Code::TooLarge,
                   .message = fmt::format(
                       "{} bytes are needed for {}; one buffer of the device {} has at most {}", slot.bytes,
                       *kNames[slot.use] == 0 ? slot.name : fmt::format("{} ({})", quoted(slot.name), kNames[slot.use]),
                       limits.device, limits.bufferBytes)};
    if (slot.use != kWeights) std::tie(slot.buffer, slot.offset) = packings[slot.use].add(slot.bytes);
  }
  for (size_t use = 0; use < kUses; ++use) buffers[use] = std::move(packings[use].buffers);
  if (all <= limits.allBytes) return {};
  return Error{.code = Code::TooLarge,
               .message = fmt::format("{} bytes are needed on the device {}, which has {}", all, limits.device,
                                      limits.allBytes)};
}

}  // namespace aglow::device
