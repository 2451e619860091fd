// The transformed filter of a channel pair is G g G', where g is its 3x3 filter.
#include "backends/winograd.h"

#include <algorithm>
#include <vector>

#include "ops/winograd.h"
#include "support/sizes.h"
#include "support/thread_pool.h"

namespace aglow {

namespace {

// Results computed over results wanted.
double waste(int64_t height, int64_t width, int64_t tile) {
  const double computed = static_cast<double>(alignUp(height, tile) * alignUp(width, tile));
  return computed / static_cast<double>(height * width);
}

// Channel by channel, on the threads that the process has.
template <int kTile>
Tensor transformed(const Tensor& filter, int64_t panel) {
  constexpr int64_t kPoints = (kTile + 2) * (kTile + 2);
  const int64_t outputs = filter.type().dim(0), channels = filter.type().dim(1), panels = ceilDiv(outputs, panel);
  Tensor result(Type(ElemKind::Float32, Shape({kPoints, panels, channels, panel})));
  const float* from = filter.ref().as<const float>();
  auto* to = reinterpret_cast<float*>(result.mutableData());
  const auto transform = [&](int64_t c) {
    std::vector<double> points(static_cast<size_t>(kPoints * outputs));
    for (int64_t o = 0; o < outputs; ++o) {
      double taps[9];
      std::copy_n(from + (o * channels + c) * 9, 9, taps);
      winograd::transform2d(winograd::Transform<kTile>::kFilter, taps, points.data() + o * kPoints);
    }
    for (int64_t point = 0; point < kPoints; ++point)
      for (int64_t o = 0; o < outputs; ++o)
        to[((point * panels + o / panel) * channels + c) * panel + o % panel] =
            static_cast<float>(points[static_cast<size_t>(o * kPoints + point)]);
  };
  ThreadPool::ofProcess(1)->run({.units = channels}, [&](int, int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) transform(c);
    return 0;
  });
  return result;
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
  return tile == 2 ? transformed<2>(filter, panel) : transformed<4>(filter, panel);
}

}  // namespace aglow
