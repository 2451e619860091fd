// The transformed filter of a channel pair is G g G', where g is its 3x3 filter.
#include "kernels/conv/winograd_filter.h"

#include <algorithm>

#include "ops/winograd.h"
#include "support/sizes.h"

namespace aglow::cpu {

namespace {

// Results computed over results wanted.
double waste(int64_t height, int64_t width, int64_t tile) {
  const double computed = static_cast<double>(alignUp(height, tile) * alignUp(width, tile));
  return computed / static_cast<double>(height * width);
}

}  // namespace

int winogradTile(int64_t channels, int64_t outputs, int64_t height, int64_t width) {
  // The transforms cost as much for one channel as for many; the products they save grow with the channels.
  constexpr int64_t kFewChannels = 32;
  constexpr int64_t kSmallMap = 28;
  if (std::min(channels, outputs) < kFewChannels || std::min(height, width) < 4) return 0;
  // Small maps read every element of the filter for few tiles, so there the smaller filter wins.
  if (std::min(height, width) >= kSmallMap && waste(height, width, 4) < 1.3) return 4;
  return waste(height, width, 2) < 1.6 ? 2 : 0;
}

Tensor winogradFilter(const Tensor& filter, int tile, int64_t panel) {
  const Shape& shape = filter.type().shape();
  AGLOW_CHECK(filter.type().kind() == ElemKind::Float32 && shape.rank() == 4 && shape[2] == 3 && shape[3] == 3 &&
                  (tile == 2 || tile == 4),
              "cannot transform " + filter.type().text());
  const int64_t outputs = shape[0], channels = shape[1], edge = tile + 2;
  const double(*g)[3] = tile == 2 ? winograd::Transform<2>::kFilter : winograd::Transform<4>::kFilter;
  const int64_t panels = ceilDiv(outputs, panel);
  Tensor transformed(Type(ElemKind::Float32, Shape({edge * edge, panels, channels, panel})));
  const float* from = filter.ref().as<const float>();
  auto* to = reinterpret_cast<float*>(transformed.mutableData());
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t c = 0; c < channels; ++c) {
      const float* taps = from + (o * channels + c) * 9;
      double half[6][3];
      for (int64_t i = 0; i < edge; ++i)
        for (int64_t x = 0; x < 3; ++x) half[i][x] = g[i][0] * taps[x] + g[i][1] * taps[3 + x] + g[i][2] * taps[6 + x];
      for (int64_t i = 0; i < edge; ++i)
        for (int64_t j = 0; j < edge; ++j) {
          const double u = half[i][0] * g[j][0] + half[i][1] * g[j][1] + half[i][2] * g[j][2];
          const int64_t matrix = (i * edge + j) * panels + o / panel;
          to[(matrix * channels + c) * panel + o % panel] = static_cast<float>(u);
        }
    }
  return transformed;
}

}  // namespace aglow::cpu
