#include "backends/device/host_bytes.h"

#include <algorithm>
#include <cstring>

#include "support/sizes.h"

namespace aglow::device {

HostBytes::HostBytes(const Program& program, std::span<const std::byte* const> in, std::span<std::byte* const> out) {
  const std::vector<RegionId> from = program.inputs(), to = program.outputs();
  for (size_t i = 0; i < from.size(); ++i) inputs[from[i]] = const_cast<std::byte*>(in[i]);
  for (size_t i = 0; i < to.size(); ++i) outputs[to[i]] = out[i];
}

void copyBytes(ThreadPool& pool, std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes == 0 || to == from) return;
  constexpr int64_t kPiece = 256 << 10;
  constexpr int kCores = 4;  // more gain nothing
  pool.run({.units = ceilDiv(bytes, kPiece), .threads = kCores}, [&](int, int64_t begin, int64_t end) {
    const int64_t first = begin * kPiece, last = std::min(end * kPiece, bytes);
    std::memcpy(to + first, from + first, static_cast<size_t>(last - first));
    return 0;
  });
}

}  // namespace aglow::device
