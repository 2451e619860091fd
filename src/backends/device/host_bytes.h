// The host's memory of a run.
#pragma once

#include <map>
#include <span>

#include "inst/program.h"
#include "support/thread_pool.h"

namespace aglow::device {

// By placeholder; inputs are only read.
struct HostBytes {
  std::map<RegionId, std::byte*> inputs, outputs;

  HostBytes(const Program& program, std::span<const std::byte* const> in, std::span<std::byte* const> out);
};

// A processor's core copies at a fraction of what its memory and the device's link give: by several.
void copyBytes(ThreadPool& pool, std::byte* to, const std::byte* from, int64_t bytes);

}  // namespace aglow::device
