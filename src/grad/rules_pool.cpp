// Gradients of pools: to the winner of each window, or to all its elements.
#include <algorithm>

#include "grad/rules.h"
#include "grad/shapes.h"
#include "graph/op_views.h"
#include "ops/window.h"

namespace aglow::grad {

namespace {

// Each gradient added to the element of x that `winners` names; windows without elements name none.
Value toWinners(Builder& b, Value g, Value winners, const Type& x) {
  const int64_t elements = x.elements(), count = g.type().elements();
  if (count == 0) return zeros(b, x);
  const Value places = b.reshaped(winners, {count});
  const Value past = b.scalar(places.kind(), static_cast<double>(elements));
  const Value targets = b.where(b.less(places, b.scalar(places.kind(), 0)), past, places);
  const Value none = b.splat({.elem = x.kind(), .shape = {elements + 1}});
  const Value sums = b.scatter(none, targets, b.reshaped(g, {count}), {.reduction = "add"});
  return b.reshaped(b.slice(sums, {.starts = {0}, .sizes = {elements}}), x.shape().dims());
}

// How many elements the windows along one axis have, shaped so that it broadcasts to the result.
Value countsAlong(Builder& b, const Window& window, int axis, const Shape& x, const Shape& y, bool padded,
                  ElemKind kind) {
  const auto a = static_cast<size_t>(axis);
  const int64_t first = padded ? -window.before[a] : 0;
  const int64_t end = x[axis + 2] + (padded ? window.after[a] : 0);
  std::vector<double> counts;
  for (int64_t i = 0; i < y[axis + 2]; ++i) {
    int64_t count = 0;
    for (int64_t tap = 0; tap < window.kernel[a]; ++tap) {
      const int64_t place = i * window.strides[a] - window.before[a] + tap * window.dilations[a];
      count += place >= first && place < end ? 1 : 0;
    }
    counts.push_back(static_cast<double>(std::max<int64_t>(count, 1)));
  }
  std::vector<int64_t> dims(static_cast<size_t>(y.rank() - axis - 2), 1);
  dims.front() = y[axis + 2];
  return b.constant(Tensor::fromDoubles(Type(kind, Shape(dims)), counts));
}

}  // namespace

std::vector<Value> maxPool(const Backward& s) {
  const MaxPoolNode v(s.node);
  Node* again = s.b.maxPoolWithIndices(
      v.x(),
      {.kernel = v.kernel(), .strides = v.strides(), .pads = v.pads(), .dilations = v.dilations(), .sizes = v.sizes()});
  return {toWinners(s.b, s.dy[0], again->result(1), v.x().type())};
}

std::vector<Value> maxPoolWithIndices(const Backward& s) {
  if (!s.dy[0]) return {};
  return {toWinners(s.b, s.dy[0], s.node.result(1), s.in(0).type())};
}

std::vector<Value> avgPool(const Backward& s) {
  const AvgPoolNode v(s.node);
  Builder& b = s.b;
  const Shape &x = v.x().shape(), &y = s.dy[0].shape();
  if (x.elements() == 0 || y.elements() == 0) return {zeros(b, v.x().type())};
  const Window window = orFail(windowOf(v.attrs(), v.kernel()));
  Value g = s.dy[0];
  for (int a = 0; a < window.axes(); ++a) g = b.div(g, countsAlong(b, window, a, x, y, v.countIncludePad(), g.kind()));
  // Every element of a window gets the same: a transposed convolution by ones, of which the image is a part.
  std::vector<int64_t> taps{x[1], 1};
  taps.insert(taps.end(), window.kernel.begin(), window.kernel.end());
  const Value all = b.convTranspose(g, b.splat({.value = 1, .elem = g.kind(), .shape = taps}), Value{},
                                    {.strides = window.strides, .dilations = window.dilations, .group = x[1]});
  std::vector<int64_t> starts{0, 0}, sizes{x[0], x[1]}, after{0, 0};
  for (int a = 0; a < window.axes(); ++a) {
    const int64_t before = window.before[static_cast<size_t>(a)], extent = all.dim(a + 2);
    starts.push_back(std::min(before, extent));
    sizes.push_back(std::min(x[a + 2], extent - starts.back()));
    after.push_back(x[a + 2] - sizes.back());
  }
  const Value inside = all.shape().dims() == sizes ? all : b.slice(all, {.starts = starts, .sizes = sizes});
  if (inside.shape() == x) return {inside};
  return {b.pad(inside, b.scalarLike(inside, 0), {.before = std::vector<int64_t>(after.size(), 0), .after = after})};
}

}  // namespace aglow::grad
