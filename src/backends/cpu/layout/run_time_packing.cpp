#include "backends/cpu/layout/run_time_packing.h"

#include "ops/winograd.h"
#include "support/sizes.h"

namespace aglow {

using Ints = std::vector<int64_t>;

namespace {

// An axis filled up with zeros to whole panels, and cut into them: [..., panels, panel, ...].
Value inPanels(Builder& b, Value x, int64_t panel, int axis = 0) {
  const auto a = static_cast<size_t>(axis);
  const int64_t panels = ceilDiv(x.dim(axis), panel), missing = panels * panel - x.dim(axis);
  if (missing > 0) {
    Ints before(static_cast<size_t>(x.rank()), 0), after = before;
    after[a] = missing;
    x = b.pad(x, b.scalarLike(x, 0), {.before = before, .after = after});
  }
  Ints dims = x.shape().dims();
  dims[a] = panel;
  dims.insert(dims.begin() + axis, panels);
  return b.reshaped(x, dims);
}

// Column i holds what the tap i of a filter adds to the points of its transformed form.
template <int kTile>
Tensor transformation() {
  constexpr int64_t kTaps = 9, kPoints = (kTile + 2) * (kTile + 2);
  std::vector<double> all;
  for (int64_t tap = 0; tap < kTaps; ++tap) {
    double taps[kTaps] = {}, points[kPoints] = {};
    taps[tap] = 1;
    winograd::transform2d(winograd::Transform<kTile>::kFilter, taps, points);
    all.insert(all.end(), points, points + kPoints);
  }
  return Tensor::fromDoubles(Type(ElemKind::Float32, Shape{kTaps, kPoints}), all);
}

}  // namespace

Value packMatrixAtRunTime(Builder& b, Value matrix, int64_t panel) {
  return b.transposed(inPanels(b, matrix, panel, 1), {1, 0, 2});
}

Value packFilterAtRunTime(Builder& b, Value filter, int64_t panel) {
  return b.transposed(inPanels(b, filter, panel), {0, 3, 4, 2, 1});
}

Value unpackSums(Builder& b, Value packed, int64_t outputs) {
  const Ints dims{packed.dim(0) * packed.dim(4), packed.dim(3), packed.dim(1), packed.dim(2)};
  const Value all = b.reshaped(b.transposed(packed, {0, 4, 3, 1, 2}), dims);
  if (dims[0] == outputs) return all;
  return b.slice(all, {.starts = Ints(dims.size(), 0), .sizes = {outputs, dims[1], dims[2], dims[3]}});
}

Value transformAtRunTime(Builder& b, Value filter, int tile, int64_t panel) {
  const int64_t outputs = filter.dim(0), channels = filter.dim(1);
  const Value matrix = b.constant(tile == 2 ? transformation<2>() : transformation<4>());
  const Value points = b.matMul(b.reshaped(filter, {outputs * channels, matrix.dim(0)}), matrix);
  return b.transposed(inPanels(b, b.reshaped(points, {outputs, channels, matrix.dim(1)}), panel), {3, 0, 2, 1});
}

}  // namespace aglow
