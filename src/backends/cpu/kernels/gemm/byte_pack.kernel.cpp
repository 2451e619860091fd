// What products of two matrices of bytes need before their tiles: the right ones in panels, and sums of the left ones'
// rows.
#include "backends/cpu/kernels/gemm/byte_pack.h"
#include "backends/cpu/kernels/gemm/byte_pack_desc.h"

namespace aglow::cpu {

template <int W>
AGLOW_INLINE int32_t packBytes(const PackBytesDesc& d, void* const* p, int64_t begin, int64_t end) {
  const ByteMatrix matrix{d.depth, d.columns, d.transposed ? d.depth : d.columns, d.transposed, d.flip};
  const int64_t panel = (byteGroups(d.depth) + 1) * 2 * W;
  AGLOW_ROLLED for (int64_t unit = begin; unit < end; ++unit) {
    const auto* from = static_cast<const uint8_t*>(p[2]) + unit / d.panels * d.depth * d.columns;
    packBytePanel<W>(matrix, {d.aOffset, d.bOffset}, from, unit % d.panels * 2 * W,
                     static_cast<int32_t*>(p[3]) + d.to + unit * panel);
  }
  return kDone;
}

template <int W>
AGLOW_INLINE int32_t rowStarts(const RowStartsDesc& d, void* const* p, int64_t begin, int64_t end) {
  AGLOW_ROLLED for (int64_t row = begin * d.unitRows; row < smaller(end * d.unitRows, d.rows);
                    ++row) static_cast<int32_t*>(p[3])[d.to + row] =
      static_cast<int32_t>(d.factor) * sumOfRow<W>(static_cast<const uint8_t*>(p[1]) + row * d.depth, d.depth);
  return kDone;
}

}  // namespace aglow::cpu

#define AGLOW_PACK_BYTES(W)                                                                                   \
  extern "C" int32_t aglow_pack_bytes_w##W(const aglow::cpu::PackBytesDesc* d, void* const* p, int64_t begin, \
                                           int64_t end) {                                                     \
    return aglow::cpu::packBytes<W>(*d, p, begin, end);                                                       \
  }                                                                                                           \
  extern "C" int32_t aglow_row_starts_w##W(const aglow::cpu::RowStartsDesc* d, void* const* p, int64_t begin, \
                                           int64_t end) {                                                     \
    return aglow::cpu::rowStarts<W>(*d, p, begin, end);                                                       \
  }

AGLOW_PACK_BYTES(4)
AGLOW_PACK_BYTES(8)
AGLOW_PACK_BYTES(16)
