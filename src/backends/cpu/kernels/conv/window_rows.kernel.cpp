// Convolutions of bf16 and of bytes on matrix registers, which need the channels of a position side by side.
#include "backends/cpu/kernels/gemm/matrix_tile.h"

namespace aglow::cpu {

constexpr int kPieceBytes = 16;

// Of whole groups.
AGLOW_INLINE void copyBytes(uint8_t* to, const uint8_t* from, int64_t count) {
  using Piece = Lanes<uint8_t, kPieceBytes>;
  using Group = Lanes<uint8_t, kGroupBytes>;
  int64_t i = 0;
  for (; i + kPieceBytes <= count; i += kPieceBytes) storeLanes(to + i, loadLanes<Piece>(from + i));
  for (; i < count; i += kGroupBytes) storeLanes(to + i, loadLanes<Group>(from + i));
}

AGLOW_INLINE void fillBytes(uint8_t* to, int64_t value, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<uint8_t>(value);
}

// The channels of a position, block after block.
AGLOW_INLINE uint8_t* copyChannels(const WindowRowsDesc& d, const uint8_t* from, uint8_t* to) {
  const int64_t blocks = d.channelBytes / d.blockBytes, rest = d.channelBytes % d.blockBytes;
  AGLOW_ROLLED for (int64_t block = 0; block < blocks; ++block, from += d.xBlock, to += d.blockBytes)
      copyBytes(to, from, d.blockBytes);
  copyBytes(to, from, rest);
  return to + rest;
}

// What the window of a row sees, and zeros up to a whole step.
AGLOW_INLINE void copyWindow(const WindowRowsDesc& d, const uint8_t* x, int64_t row, uint8_t* to) {
  const ImagePosition at = positionOf(d.product, row);
  x += at.image * d.xImage;
  if (d.pointwise) {
    to = copyChannels(d, x + at.position * d.blockBytes, to);
  } else {
    const int64_t top = at.position / d.outWidth * d.sy - d.py, start = at.position % d.outWidth * d.sx - d.px;
    AGLOW_ROLLED for (int64_t ky = 0; ky < d.kh; ++ky) AGLOW_ROLLED for (int64_t kx = 0; kx < d.kw; ++kx) {
      const int64_t y = top + ky * d.dy, column = start + kx * d.dx;
      if (y < 0 || y >= d.height || column < 0 || column >= d.width) {
        fillBytes(to, d.outside, d.channelBytes);
        to += d.channelBytes;
      } else {
        to = copyChannels(d, x + y * d.xRow + column * d.blockBytes, to);
      }
    }
  }
  const int64_t bytes = d.product.groups * kGroupBytes;
  fillBytes(to, 0, roundedUp(bytes, kTileBytes) * kTileBytes - bytes);
}

template <bool Halves, class Sum>
AGLOW_MATRIX AGLOW_INLINE int32_t windowProducts(const WindowRowsDesc& d, void* const* p, int64_t begin, int64_t end,
                                                 Epilogue<kMatrixLanes, Sum>* epilogue) {
  const auto* x = static_cast<const uint8_t*>(p[1]);
  auto* scratch = static_cast<uint8_t*>(p[3]);
  const int64_t units = d.product.rowGroups * d.product.panelGroups;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t unit = i % units, round = i / units, first = round / 2 * d.stretch;
    const MatrixRows rows{.at = scratch, .first = first, .count = smaller(d.stretch, d.product.rows - first)};
    if (round % 2 == 0)
      for (int64_t row = unit * rows.count / units; row < (unit + 1) * rows.count / units; ++row)
        copyWindow(d, x, first + row, scratch + row * d.product.rowBytes);
    else
      multiplyRows<Halves, Sum>(d.product, p, rows, unit, epilogue);
  }
  return kDone;
}

}  // namespace aglow::cpu

extern "C" AGLOW_MATRIX int32_t aglow_window_halves_w16(const aglow::cpu::WindowRowsDesc* d, void* const* p,
                                                        int64_t begin, int64_t end,
                                                        aglow::cpu::Epilogue<16>* epilogue) {
  return aglow::cpu::windowProducts<true, float>(*d, p, begin, end, epilogue);
}
extern "C" AGLOW_MATRIX int32_t aglow_window_bytes_w16(const aglow::cpu::WindowRowsDesc* d, void* const* p,
                                                       int64_t begin, int64_t end,
                                                       aglow::cpu::Epilogue<16, int32_t>* epilogue) {
  return aglow::cpu::windowProducts<false, int32_t>(*d, p, begin, end, epilogue);
}
