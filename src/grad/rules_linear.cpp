// Gradients of products and convolutions: products and convolutions again.
#include "grad/rules.h"
#include "grad/shapes.h"
#include "graph/op_views.h"
#include "ops/window.h"

namespace aglow::grad {

namespace {

Value turned(Builder& b, Value x) {
  std::vector<int64_t> perm = axesBetween(0, x.rank());
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return b.transposed(x, perm);
}

Value asMatrix(Builder& b, Value x) {
  const int64_t columns = x.dim(x.rank() - 1);
  int64_t rows = 1;
  for (int a = 0; a + 1 < x.rank(); ++a) rows *= x.dim(a);
  return b.reshaped(x, {rows, columns});
}

Window windowOfFilter(const Attrs& attrs, Value filter) {
  const std::vector<int64_t>& dims = filter.shape().dims();
  return orFail(windowOf(attrs, {dims.begin() + 2, dims.end()}));
}

std::vector<int64_t> padsOf(const Window& window) {
  std::vector<int64_t> pads = window.before;
  pads.insert(pads.end(), window.after.begin(), window.after.end());
  return pads;
}

// Batch and channels.
Value exchanged(Builder& b, Value x) {
  std::vector<int64_t> perm = axesBetween(0, x.rank());
  std::swap(perm[0], perm[1]);
  return b.transposed(x, perm);
}

// The axes of [batch, group * channel, ...] as [batch, group, channel, ...] in the order of `perm`, the first two of
// them then joined or not.
Value regrouped(Builder& b, Value x, int64_t groups, std::vector<int64_t> perm, bool joinFirst) {
  if (groups == 1) return exchanged(b, x);
  std::vector<int64_t> split{x.dim(0), groups, x.dim(1) / groups}, joined;
  for (int a = 2; a < x.rank(); ++a) {
    perm.push_back(a + 1);
    split.push_back(x.dim(a));
  }
  std::vector<int64_t> moved;
  for (const int64_t a : perm) moved.push_back(split[static_cast<size_t>(a)]);
  if (joinFirst)
    joined = {moved[0] * moved[1], moved[2]};
  else
    joined = {moved[0], moved[1] * moved[2]};
  joined.insert(joined.end(), moved.begin() + 3, moved.end());
  return b.reshaped(b.transposed(b.reshaped(x, split), perm), joined);
}

// The gradient of the filter of a convolution of `image` whose result has the gradient `g`: a convolution of the image
// by g that sums over the batch, where steps and dilations have changed places.
Value filterGradient(Builder& b, Value image, Value g, const Window& window, int64_t groups, const Type& filter) {
  if (image.type().elements() == 0 || g.type().elements() == 0 || filter.elements() == 0) return zeros(b, filter);
  const Value x = regrouped(b, image, groups, {2, 1, 0}, false);
  const Value taps = regrouped(b, g, groups, {1, 2, 0}, true);
  const Value all =
      b.conv(x, taps, Value{},
             {.strides = window.dilations, .pads = padsOf(window), .dilations = window.strides, .group = groups});
  return firstOf(b, exchanged(b, all), filter.shape().dims());
}

Value biasGradient(Builder& b, Value g) {
  std::vector<int64_t> axes = axesBetween(2, g.rank());
  axes.insert(axes.begin(), 0);
  return b.reduced(g, "sum", axes, false);
}

}  // namespace

std::vector<Value> matMul(const Backward& s) {
  const MatMulNode v(s.node);
  Builder& b = s.b;
  const Value g = s.dy[0];
  Value da, db;
  if (s.wants(0)) da = summedTo(b, b.matMul(g, turned(b, v.b())), v.a().shape());
  if (s.wants(1)) {
    // One matrix for all rows of a batch: one product.
    if (v.b().rank() == 2)
      db = b.matMul(turned(b, asMatrix(b, v.a())), asMatrix(b, g));
    else
      db = summedTo(b, b.matMul(turned(b, v.a()), g), v.b().shape());
  }
  return {da, db};
}

std::vector<Value> conv(const Backward& s) {
  const ConvNode v(s.node);
  Builder& b = s.b;
  const Value g = s.dy[0];
  const Window window = windowOfFilter(v.attrs(), v.filter());
  Value dx, dfilter, dbias;
  if (s.wants(0)) {
    // What the windows leave over at the end.
    std::vector<int64_t> rest;
    for (int a = 0; a < window.axes(); ++a) {
      const auto i = static_cast<size_t>(a);
      rest.push_back(v.x().dim(a + 2) + window.before[i] + window.after[i] -
                     ((g.dim(a + 2) - 1) * window.strides[i] + window.reach(a)));
    }
    if (g.type().elements() == 0)
      dx = zeros(b, v.x().type());
    else
      dx = b.convTranspose(g, v.filter(), Value{},
                           {.strides = window.strides,
                            .pads = padsOf(window),
                            .dilations = window.dilations,
                            .group = v.group(),
                            .outputPadding = rest});
  }
  if (s.wants(1)) dfilter = filterGradient(b, v.x(), g, window, v.group(), v.filter().type());
  if (s.wants(2)) dbias = biasGradient(b, g);
  return {dx, dfilter, dbias};
}

std::vector<Value> convTranspose(const Backward& s) {
  const ConvTransposeNode v(s.node);
  Builder& b = s.b;
  const Value g = s.dy[0];
  const Window window = windowOfFilter(v.attrs(), v.filter());
  Value dx, dfilter, dbias;
  if (s.wants(0)) {
    if (g.type().elements() == 0 || v.x().type().elements() == 0)
      dx = zeros(b, v.x().type());
    else
      dx = firstOf(
          b,
          b.conv(
              g, v.filter(), Value{},
              {.strides = window.strides, .pads = padsOf(window), .dilations = window.dilations, .group = v.group()}),
          v.x().shape().dims());
  }
  if (s.wants(1)) dfilter = filterGradient(b, g, v.x(), window, v.group(), v.filter().type());
  if (s.wants(2)) dbias = biasGradient(b, g);
  return {dx, dfilter, dbias};
}

}  // namespace aglow::grad
