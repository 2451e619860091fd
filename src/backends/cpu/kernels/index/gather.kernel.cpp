// Rows of a tensor at computed places. An index is checked before anything is read through it.
#include "backends/cpu/kernels/index/index.h"
#include "backends/cpu/kernels/vectors.h"

namespace aglow::cpu {

namespace {

// Neighbours in the result that are neighbours in the data.
struct Run {
  int64_t to, from, count;
};

template <class T>
[[gnu::always_inline]] inline void copyRun(const T* from, T* to, int64_t count) {
  constexpr int kN = 32 / sizeof(T);
  if (count < kN) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  using V = Lanes<T, kN>;
  for (int64_t i = 0; i + kN <= count; i += kN) storeLanes(to + i, loadLanes<V>(from + i));
  storeLanes(to + count - kN, loadLanes<V>(from + count - kN));
}

// The places that `count` indices name; false where one lies outside of the axis.
[[gnu::always_inline]] inline bool placesOf(const IndexDesc& indices, const void* base, int64_t first, int64_t count,
                                            int64_t* places) {
  int64_t least = 0;
  for (int64_t i = 0; i < count; ++i) {
    places[i] = placeOf(indices, base, first + i);
    least |= places[i];
  }
  return least >= 0;
}

template <class T>
[[gnu::always_inline]] inline int32_t gatherElements(const GatherElementsDesc* d, void* const* p, int64_t begin,
                                                     int64_t end) {
  const T* data = static_cast<const T*>(p[1]);
  T* result = static_cast<T*>(p[0]);
  const int64_t columns = d->indices.count, extent = d->indices.extent;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t col = item % d->colBlocks * kGatherCols, count = least(kGatherCols, columns - col);
    const int64_t row = item / d->colBlocks * d->rowBlock, last = least(row + d->rowBlock, d->outer);
    int64_t places[kGatherCols];
    if (!placesOf(d->indices, p[d->indices.operand], col, count, places)) return kBadIndex;
    constexpr int64_t kLong = 4;
    int64_t runs = 1;
    if (d->outer > 1)
      for (int64_t i = 1; i < count; ++i) runs += places[i] == places[i - 1] + 1 ? 0 : 1;
    if (d->outer == 1 || runs * kLong > count) {
      for (int64_t r = row; r < last; ++r) {
        const T* from = data + r * extent;
        T* to = result + r * columns + col;
        for (int64_t i = 0; i < count; ++i) to[i] = from[places[i]];
      }
      continue;
    }
    Run list[kGatherCols / kLong];
    int64_t found = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (i == 0 || places[i] != places[i - 1] + 1) list[found++] = {i, places[i], 0};
      ++list[found - 1].count;
    }
    for (int64_t r = row; r < last; ++r)
      for (int64_t n = 0; n < found; ++n)
        copyRun(data + r * extent + list[n].from, result + r * columns + col + list[n].to, list[n].count);
  }
  return kDone;
}

template <class T>
[[gnu::always_inline]] inline int32_t gatherAlong(const GatherAlongDesc* d, void* const* p, int64_t begin,
                                                  int64_t end) {
  const T* data = static_cast<const T*>(p[1]);
  T* result = static_cast<T*>(p[0]);
  const int64_t last = d->items.first(end);
  int64_t item = d->items.first(begin);
  Walk<1> row(d->rows, item / d->pieces);
  for (; item < last; ++item) {
    const int64_t first = item % d->pieces * kGatherCols, count = least(kGatherCols, d->cols - first);
    const int64_t at = item / d->pieces * d->cols + first;
    int64_t places[kGatherCols];
    if (!placesOf(d->indices, p[d->indices.operand], at, count, places)) return kBadIndex;
    const T* from = data + row.offset[0] + first * d->beside;
    T* to = result + at;
    for (int64_t i = 0; i < count; ++i) to[i] = from[places[i] * d->skip + i * d->beside];
    if (first + count == d->cols) row.next();
  }
  return kDone;
}

}  // namespace

extern "C" int32_t aglow_gather_along(const GatherAlongDesc* d, void* const* p, int64_t begin, int64_t end) {
  if (d->elemBytes == 1) return gatherAlong<uint8_t>(d, p, begin, end);
  if (d->elemBytes == 2) return gatherAlong<uint16_t>(d, p, begin, end);
  if (d->elemBytes == 4) return gatherAlong<uint32_t>(d, p, begin, end);
  return gatherAlong<uint64_t>(d, p, begin, end);
}

extern "C" int32_t aglow_gather_elements(const GatherElementsDesc* d, void* const* p, int64_t begin, int64_t end) {
  if (d->elemBytes == 1) return gatherElements<uint8_t>(d, p, begin, end);
  if (d->elemBytes == 2) return gatherElements<uint16_t>(d, p, begin, end);
  if (d->elemBytes == 4) return gatherElements<uint32_t>(d, p, begin, end);
  return gatherElements<uint64_t>(d, p, begin, end);
}

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
