// Copies between strided memories: runs where both sides have neighbours, small tiles through registers where rows and
// columns change places, one by one otherwise.
#include "backends/cpu/kernels/move/cpu_desc.h"
#include "backends/cpu/kernels/vectors.h"

namespace aglow::cpu {

namespace {

template <class T>
[[gnu::always_inline]] inline void copyPlain(const CopyDesc* d, const T* from, T* to, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) to[r * d->rowTo + c * d->colTo] = from[r * d->rowFrom + c * d->colFrom];
}

// In tiles of kN by kN.
template <class T, int kN>
[[gnu::always_inline]] inline void copyTiles(const CopyDesc* d, const T* from, T* to, int64_t rows, int64_t cols) {
  int64_t r = 0;
  // A tile fills the registers and is long enough as code.
#pragma clang loop unroll(disable)
  for (; r + kN <= rows; r += kN) {
    int64_t c = 0;
#pragma clang loop unroll(disable)
    for (; c + kN <= cols; c += kN) {
      Lanes<T, kN> tile[kN];
      for (int i = 0; i < kN; ++i) tile[i] = loadLanes<Lanes<T, kN>>(from + r + (c + i) * d->colFrom);
      transposeLanes<T, kN>(tile);
      for (int i = 0; i < kN; ++i) storeLanes(to + (r + i) * d->rowTo + c, tile[i]);
    }
    copyPlain(d, from + r + c * d->colFrom, to + r * d->rowTo + c, kN, cols - c);
  }
  copyPlain(d, from + r, to + r * d->rowTo, rows - r, cols);
}

template <class T>
[[gnu::always_inline]] inline void copyBlocks(const CopyDesc* d, void* const* p, int64_t first, int64_t last) {
  const T* source = static_cast<const T*>(p[1]);
  T* target = static_cast<T*>(p[0]);
  const int64_t axes = d->blocks.rank;
  Walk<2> walk(d->blocks, first);
  for (int64_t item = first; item < last; ++item, walk.next()) {
    // Whole extents stay constants in specialised code.
    const int64_t rows =
        d->rowBlock == d->rows ? d->rows : least(d->rowBlock, d->rows - walk.index[axes - 2] * d->rowBlock);
    const int64_t cols =
        d->colBlock == d->cols ? d->cols : least(d->colBlock, d->cols - walk.index[axes - 1] * d->colBlock);
    const T* from = source + walk.offset[0];
    T* to = target + walk.offset[1];
    if (d->colFrom == 1 && d->colTo == 1) {
      for (int64_t r = 0; r < rows; ++r)
        __builtin_memcpy(to + r * d->rowTo, from + r * d->rowFrom, static_cast<uint64_t>(cols) * sizeof(T));
    } else if (d->rowFrom == 1 && d->colTo == 1) {
      // Whole lines of 64 bytes where vectors are as wide; bytes and pairs would need too many registers for that.
      constexpr int kNarrow = sizeof(T) == 1 ? 16 : sizeof(T) == 8 ? 4 : 8;
      constexpr int kWide = sizeof(T) == 8 ? 8 : 16;
      if (d->wide != 0)
        copyTiles<T, kWide>(d, from, to, rows, cols);
      else
        copyTiles<T, kNarrow>(d, from, to, rows, cols);
    } else {
      copyPlain(d, from, to, rows, cols);
    }
  }
}

}  // namespace

extern "C" int32_t aglow_copy(const CopyDesc* d, void* const* p, int64_t begin, int64_t end) {
  const int64_t first = d->items.first(begin);
  const int64_t last = d->items.first(end);
  if (d->elemBytes == 1) copyBlocks<uint8_t>(d, p, first, last);
  if (d->elemBytes == 2) copyBlocks<uint16_t>(d, p, first, last);
  if (d->elemBytes == 4) copyBlocks<uint32_t>(d, p, first, last);
  if (d->elemBytes == 8) copyBlocks<uint64_t>(d, p, first, last);
  return kDone;
}

}  // namespace aglow::cpu
