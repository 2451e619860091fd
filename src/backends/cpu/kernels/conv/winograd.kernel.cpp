// Convolutions by Winograd's method: run by run with everything in cache, or as three steps around products that are
// divided among threads themselves.
#include "backends/cpu/kernels/conv/winograd.h"

namespace aglow::cpu {

template <int W, int kTile, int R>
AGLOW_INLINE int32_t winograd(const WinogradDesc& d, void* const* p, int64_t begin, int64_t end,
                              Epilogue<W>* epilogue) {
  constexpr int64_t kPositions = (kTile + 2) * (kTile + 2);
  const float* x = static_cast<const float*>(p[1]);
  const float* filter = static_cast<const float*>(p[2]);
  const int64_t runs = roundedUp(d.tiles, d.run);
  for (int64_t unit = begin; unit < end; ++unit) {
    float* scratch = static_cast<float*>(p[d.scratch]) + unit * d.unitElements;
    float* v = scratch + d.vOffset;
    float* m = scratch + d.mOffset;
    for (int64_t run = unit * runs / d.units; run < (unit + 1) * runs / d.units; ++run) {
      const int64_t first = run * d.run, tiles = smaller(d.run, d.tiles - first);
      // A last run that is short repeats its last tile, so that products are always of the same height.
      for (int64_t block = 0; block < d.blocks; ++block)
        for (int64_t t = 0; t < d.run; ++t) transformInput<W, kTile>(d, x, v, block, first + smaller(t, tiles - 1), t);
      const auto keep = [&](Lanes<float, W> value, int64_t position, int64_t vector, int64_t, int64_t t)
                            __attribute__((always_inline)) {
                              storeLanes(m + position * d.mPosition + (vector * d.run + t) * W, value);
                            };
      computeTiles<W, R>(FloatProducts<W>{}, d.products, v, filter, static_cast<float*>(nullptr),
                         static_cast<const float*>(nullptr), 0, kPositions, keep);
      for (int64_t vector = 0; vector < d.vectors; ++vector)
        for (int64_t t = 0; t < tiles; ++t)
          transformOutput<W, kTile>(
              d, m, vector, first + t, t,
              [&](Lanes<float, W> value, int64_t image, int64_t position)
                  __attribute__((always_inline)) { epilogue(value, p, image, vector, position, 0, W); });
    }
  }
  return kDone;
}

template <int W, int kTile>
AGLOW_INLINE int32_t winogradInput(const WinogradDesc& d, void* const* p, int64_t begin, int64_t end) {
  const float* x = static_cast<const float*>(p[1]);
  float* v = static_cast<float*>(p[d.scratch]) + d.vOffset;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t block = unit / d.tileGroups, group = unit % d.tileGroups;
    for (int64_t t = group * d.tiles / d.tileGroups; t < (group + 1) * d.tiles / d.tileGroups; ++t)
      transformInput<W, kTile>(d, x, v, block, t, t);
  }
  return kDone;
}

template <int W, int kTile>
AGLOW_INLINE int32_t winogradOutput(const WinogradDesc& d, void* const* p, int64_t begin, int64_t end,
                                    Epilogue<W>* epilogue) {
  const float* m = static_cast<const float*>(p[d.scratch]) + d.mOffset;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t vector = unit / d.tileGroups, group = unit % d.tileGroups;
    for (int64_t t = group * d.tiles / d.tileGroups; t < (group + 1) * d.tiles / d.tileGroups; ++t)
      transformOutput<W, kTile>(
          d, m, vector, t, t,
          [&](Lanes<float, W> value, int64_t image, int64_t position)
              __attribute__((always_inline)) { epilogue(value, p, image, vector, position, 0, W); });
  }
  return kDone;
}

}  // namespace aglow::cpu

#define AGLOW_WINOGRAD_RUNS(W, T, R)                                                                                   \
  extern "C" int32_t aglow_winograd##T##_r##R##_w##W(const aglow::cpu::WinogradDesc* d, void* const* p, int64_t begin, \
                                                     int64_t end, aglow::cpu::Epilogue<W>* epilogue) {                 \
    return aglow::cpu::winograd<W, T, R>(*d, p, begin, end, epilogue);                                                 \
  }
#define AGLOW_WINOGRAD_STEPS(W, T)                                                                                     \
  AGLOW_WINOGRAD_RUNS(W, T, 6)                                                                                         \
  AGLOW_WINOGRAD_RUNS(W, T, 14)                                                                                        \
  extern "C" int32_t aglow_winograd##T##_input_w##W(const aglow::cpu::WinogradDesc* d, void* const* p, int64_t begin,  \
                                                    int64_t end) {                                                     \
    return aglow::cpu::winogradInput<W, T>(*d, p, begin, end);                                                         \
  }                                                                                                                    \
  extern "C" int32_t aglow_winograd##T##_output_w##W(const aglow::cpu::WinogradDesc* d, void* const* p, int64_t begin, \
                                                     int64_t end, aglow::cpu::Epilogue<W>* epilogue) {                 \
    return aglow::cpu::winogradOutput<W, T>(*d, p, begin, end, epilogue);                                              \
  }
#define AGLOW_WINOGRAD(W) AGLOW_WINOGRAD_STEPS(W, 2) AGLOW_WINOGRAD_STEPS(W, 4)

AGLOW_WINOGRAD(4)
AGLOW_WINOGRAD(8)
AGLOW_WINOGRAD(16)
