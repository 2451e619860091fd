// Where everything of programs lies on a device, known before anything runs.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "inst/program.h"
#include "support/error.h"

namespace aglow::device {

// What memory is for. What only copies name stays with the host.
enum Use : uint8_t { kArena, kWeights, kState, kIo, kFaults, kUses, kHost = kUses };

// Bytes that lie together: all intermediate results, all faults, or a declared region.
struct Slot {
  Use use = kArena;
  std::string name = {};
  uint64_t bytes = 0;
  size_t buffer = 0;    // which of its use
  uint64_t offset = 0;  // in it
  uint64_t staged = 0;  // placeholders: in the host's memory for what travels
};

// An address on the device.
struct Place {
  size_t slot = 0;
  uint64_t offset = 0;  // in it
};

// What a device has, and its name for messages.
struct Limits {
  std::string device;
  uint64_t bufferBytes = 0, allBytes = 0;  // the first: of one buffer, at most
};

// State, inputs and outputs lie one after the other in as few buffers as their bounds allow. Who has the weights says
// where they lie (weight_store.h).
struct MemoryPlan {
  static constexpr size_t kArenaSlot = 0, kFaultSlot = 1;

  std::vector<Slot> slots;
  std::map<std::string, size_t, std::less<>> declared;  // slots of declared regions
  std::array<std::vector<uint64_t>, kUses> buffers;     // their bytes, by use
  uint64_t stagingBytes = 0;

  explicit MemoryPlan(std::span<const Program> programs);

  // Adds the slot of a declared region.
  Slot& add(const Region& region, Use use);
  const Slot& slotOf(std::string_view name) const { return slots[declared.find(name)->second]; }
  bool inHost(const Region& region) const { return region.declared() && slotOf(region.name).use == kHost; }
  Place placeOf(const Program& program, const Extent& extent) const;
  uint64_t bytesOf(Use use) const;
  // How many runs, each with buffers of its own, have room side by side; at least one.
  uint64_t contextsIn(uint64_t bytes) const;
  // Chooses buffers; TooLarge with what is needed where the device has no room.
  Status fit(const Limits& limits);
};

// The next place in buffers of bounded size, of which the last one grows, or one more begins.
struct Packing {
  uint64_t bufferBytes = 0;
  std::vector<uint64_t> buffers = {};

  // The buffer and the offset in it.
  std::pair<size_t, uint64_t> add(uint64_t bytes);
};

}  // namespace aglow::device
