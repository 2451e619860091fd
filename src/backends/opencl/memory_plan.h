// Where everything of programs lies on a device: places in a few buffers, known before anything runs.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>

#include "backends/opencl/devices.h"
#include "inst/program.h"

namespace aglow::opencl {

enum BufferId : uint8_t { kArena, kWeights, kState, kIo, kFaults, kBuffers, kHost = kBuffers };

struct Place {
  BufferId buffer = kArena;
  uint64_t offset = 0;
};

// Declared regions lie one after the other, in one buffer for each use; those that only copies name have no place, but
// stay where the host has them.
struct MemoryPlan {
  std::array<uint64_t, kBuffers> bytes = {};
  std::map<std::string, Place, std::less<>> declared;

  explicit MemoryPlan(std::span<const Program> programs);

  Place placeOf(const Program& program, const Extent& extent) const;
  // TooLarge where the device has no room for it.
  Status check(const Device& device) const;
};

}  // namespace aglow::opencl
