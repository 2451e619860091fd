// Softmax and the normalisations as reductions and elementwise operators, computed in f32 or wider.
#include <algorithm>
#include <numeric>

#include "graph/op_views.h"
#include "graph/squares.h"
#include "graph/wide.h"
#include "lower/rules.h"
#include "ops/axes.h"

namespace aglow::lowering {

namespace {

std::vector<int64_t> axesFrom(int64_t first, int rank) {
  std::vector<int64_t> axes(static_cast<size_t>(std::max<int64_t>(rank - first, 0)));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

// x less its maximum along the axis, so that no power overflows.
Value belowMaximum(Builder& b, Value x, int64_t axis) { return b.sub(x, b.reduced(x, "max", {axis})); }

struct Normalized {
  Value y, mean, inverseDeviation;
};

// Mean 0 and variance 1 over the axes.
Normalized normalized(Builder& b, Value x, const std::vector<int64_t>& axes, double epsilon) {
  const Value mean = b.reduced(x, "mean", axes);
  const Value difference = b.sub(x, mean);
  const Value inverse = b.reciprocal(rootOfSquares(b, difference, "mean", axes, epsilon));
  return {b.mul(difference, inverse), mean, inverse};
}

// One value a channel, of the kind given, so that it broadcasts to [batch, channel, ...].
Value channelwise(Builder& b, Value v, ElemKind kind, int rank) {
  std::vector<int64_t> dims(static_cast<size_t>(rank) - 1, 1);
  dims.front() = v.dim(0);
  return b.reshaped(b.casted(v, kind), std::move(dims));
}

Value scaledByChannel(Builder& b, Value y, Value scale, Value bias) {
  const int rank = y.rank();
  return b.add(b.mul(y, channelwise(b, scale, y.kind(), rank)), channelwise(b, bias, y.kind(), rank));
}

}  // namespace

std::vector<Value> softmax(Builder& b, Node& node) {
  const SoftmaxNode v(node);
  const int64_t axis = axisFromFront(v.axis(), v.x().rank());
  const Value power = b.exp(belowMaximum(b, widened(b, v.x()), axis));
  return {b.casted(b.div(power, b.reduced(power, "sum", {axis})), v.x().kind())};
}

std::vector<Value> logSoftmax(Builder& b, Node& node) {
  const LogSoftmaxNode v(node);
  const int64_t axis = axisFromFront(v.axis(), v.x().rank());
  const Value below = belowMaximum(b, widened(b, v.x()), axis);
  const Value sum = b.log(b.reduced(b.exp(below), "sum", {axis}));
  return {b.casted(b.sub(below, sum), v.x().kind())};
}

std::vector<Value> batchNorm(Builder& b, Node& node) {
  const BatchNormNode v(node);
  const Value x = widened(b, v.x());
  const Value variance = b.casted(v.variance(), x.kind());
  const Value inverse = b.reciprocal(b.sqrt(b.add(variance, b.scalarLike(variance, v.epsilon()))));
  const Value scale = b.mul(b.casted(v.scale(), x.kind()), inverse);
  const Value difference = b.sub(x, channelwise(b, v.mean(), x.kind(), x.rank()));
  return {b.casted(scaledByChannel(b, difference, scale, v.bias()), v.x().kind())};
}

std::vector<Value> layerNorm(Builder& b, Node& node) {
  const LayerNormNode v(node);
  const Value x = widened(b, v.x());
  const Normalized n = normalized(b, x, axesFrom(axisFromFront(v.axis(), x.rank()), x.rank()), v.epsilon());
  Value y = b.mul(n.y, b.casted(v.scale(), x.kind()));
  if (v.bias()) y = b.add(y, b.casted(v.bias(), x.kind()));
  return {b.casted(y, v.x().kind()), n.mean, n.inverseDeviation};
}

std::vector<Value> rmsNorm(Builder& b, Node& node) {
  const RMSNormNode v(node);
  const Value x = widened(b, v.x());
  const std::vector<int64_t> axes = axesFrom(axisFromFront(v.axis(), x.rank()), x.rank());
  const Value inverse = b.reciprocal(rootOfSquares(b, x, "mean", axes, v.epsilon()));
  return {b.casted(b.mul(b.mul(x, inverse), b.casted(v.scale(), x.kind())), v.x().kind())};
}

std::vector<Value> instanceNorm(Builder& b, Node& node) {
  const InstanceNormNode v(node);
  const Value x = widened(b, v.x());
  const Value y = normalized(b, x, axesFrom(2, x.rank()), v.epsilon()).y;
  return {b.casted(scaledByChannel(b, y, v.scale(), v.bias()), v.x().kind())};
}

std::vector<Value> groupNorm(Builder& b, Node& node) {
  const GroupNormNode v(node);
  const Value x = widened(b, v.x());
  int64_t members = x.dim(1) / v.groups();
  for (int axis = 2; axis < x.rank(); ++axis) members *= x.dim(axis);
  const Value grouped = b.reshaped(x, {x.dim(0), v.groups(), members});
  const Value y = b.reshaped(normalized(b, grouped, {2}, v.epsilon()).y, x.shape().dims());
  return {b.casted(scaledByChannel(b, y, v.scale(), v.bias()), v.x().kind())};
}

std::vector<Value> lrn(Builder& b, Node& node) {
  const LRNNode v(node);
  const Type& type = v.x().type();
  if (type.elements() == 0) return {v.x()};
  const Value x = widened(b, v.x());
  const int64_t channels = type.dim(1);
  // The mean of the squares along the channels; what reaches beyond all of them adds only zeros.
  const int64_t before = std::min((v.size() - 1) / 2, channels - 1), after = std::min(v.size() / 2, channels - 1);
  const int64_t members = before + 1 + after;
  const Value rows = b.reshaped(b.mul(x, x), {type.dim(0), 1, channels, type.elements() / type.dim(0) / channels});
  const Value mean = b.avgPool(rows, {.kernel = {members, 1}, .pads = {before, 0, after, 0}, .countIncludePad = true});
  const double alpha = v.alpha() * static_cast<double>(members) / static_cast<double>(v.size());
  const Value base = b.add(b.mul(mean, b.scalarLike(x, alpha)), b.scalarLike(x, v.bias()));
  const Value divisor = b.reshaped(b.pow(base, b.scalarLike(x, v.beta())), type.shape().dims());
  return {b.casted(b.div(x, divisor), type.kind())};
}

}  // namespace aglow::lowering
