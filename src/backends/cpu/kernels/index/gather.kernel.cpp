// Rows of a tensor at computed places. An index is checked before anything is read through it.
#include "backends/cpu/kernels/index/index.h"

namespace aglow::cpu {

extern "C" int32_t aglow_check_indices(const IndexDesc* d, void* const* p, int64_t, int64_t) {
  for (int64_t i = 0; i < d->count; ++i)
    if (placeOf(*d, p[d->operand], i) < 0) return kBadIndex;
  return kDone;
}

extern "C" int32_t aglow_gather(const GatherDesc* d, void* const* p, int64_t begin, int64_t end) {
  const auto* data = static_cast<const uint8_t*>(p[1]);
  auto* result = static_cast<uint8_t*>(p[0]);
  const int64_t last = d->items.first(end);
  for (int64_t item = d->items.first(begin); item < last; ++item) {
    const int64_t row = item / d->pieces;
    const int64_t first = item % d->pieces * d->pieceBytes;
    const int64_t outer = row / d->indices.count;
    const int64_t place = placeOf(d->indices, p[d->indices.operand], row % d->indices.count);
    if (place < 0) return kBadIndex;
    const uint8_t* from = data + (outer * d->indices.extent + place) * d->rowBytes + first;
    uint8_t* to = result + row * d->rowBytes + first;
    if (d->pieces == 1)
      __builtin_memcpy(to, from, static_cast<uint64_t>(d->rowBytes));
    else
      __builtin_memcpy(to, from, static_cast<uint64_t>(least(d->pieceBytes, d->rowBytes - first)));
  }
  return kDone;
}

}  // namespace aglow::cpu
