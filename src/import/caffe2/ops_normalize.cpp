// Normalisations, and what is computed from their like.
#include <fmt/format.h>

#include <cmath>

#include "import/caffe2/args.h"
#include "import/caffe2/op_tables.h"

namespace aglow::caffe2 {

namespace {

// Statistics of the batch itself are for training, unless the net asks for them.
void spatialBn(OpImport& c) {
  const Value x = channelsFirst(c, c.in(0));
  if (!flag(c, "is_test")) fail(Code::UnsupportedFeature, "SpatialBN for training (is_test = 0) is not supported");
  const double epsilon = realArg(c, "epsilon", 1e-5);
  c.out(orderedAsSaid(c, c.b.batchNorm(x, c.in(1), c.in(2), c.in(3), c.in(4), {.epsilon = epsilon})));
}

void lrn(OpImport& c) {
  const int64_t size = intArg(c, "size");
  if (size < 1 || size % 2 == 0) fail(Code::BadNode, fmt::format("expected an odd 'size', got {}", size));
  const Value x = channelsFirst(c, c.in(0));
  c.out(0, orderedAsSaid(c, c.b.lrn(x, {.size = size,
                                        .alpha = realArg(c, "alpha"),
                                        .beta = realArg(c, "beta"),
                                        .bias = realArg(c, "bias", 1)})));
  if (!c.wants(1)) return;
  // What the power is taken of, which Caffe2 keeps for its gradient. The mean of a window over the channels.
  const int64_t before = (size - 1) / 2;
  const Value squares = c.b.reshaped(c.b.mul(x, x), {x.dim(0), 1, x.dim(1), product(x.shape(), 2, x.rank())});
  const Value mean =
      c.b.avgPool(squares, {.kernel = {size, 1}, .pads = {before, 0, size - 1 - before, 0}, .countIncludePad = true});
  const Value sum = c.b.mul(c.b.reshaped(mean, x.shape().dims()), c.b.scalarLike(x, realArg(c, "alpha")));
  c.out(1, orderedAsSaid(c, c.b.add(sum, c.b.scalarLike(x, realArg(c, "bias", 1)))));
}

// Mean and 1/deviation of groups of channels, [batch, group], where the node asks for them.
void groupStatistics(OpImport& c, Value x, int64_t groups, double epsilon) {
  Builder& b = c.b;
  const Value rows = b.reshaped(x, {x.dim(0), groups, groups == 0 ? 0 : product(x.shape(), 1, x.rank()) / groups});
  const Value mean = b.reduced(rows, "mean", {2}), difference = b.sub(rows, mean);
  if (c.wants(1)) c.out(1, b.reshaped(mean, {x.dim(0), groups}));
  if (!c.wants(2)) return;
  const Value variance = b.reduced(b.mul(difference, difference), "mean", {2}, false);
  c.out(2, b.reciprocal(b.sqrt(b.add(variance, b.scalarLike(x, epsilon)))));
}

void instanceNorm(OpImport& c) {
  const Value x = channelsFirst(c, c.in(0));
  const double epsilon = realArg(c, "epsilon", 1e-5);
  c.out(0, orderedAsSaid(c, c.b.instanceNorm(x, c.in(1), c.in(2), {.epsilon = epsilon})));
  if (c.wants(1)) groupStatistics(c, x, x.dim(1), epsilon);
}

void groupNorm(OpImport& c) {
  const Value x = channelsFirst(c, c.in(0));
  const int64_t groups = intArg(c, "group", 32);
  if (groups < 1 || x.dim(1) % groups != 0)
    fail(Code::BadNode, fmt::format("expected 'group' to divide the channels of {}, got {}", x.type().text(), groups));
  const double epsilon = realArg(c, "epsilon", 1e-5);
  c.out(0, orderedAsSaid(c, c.b.groupNorm(x, c.in(1), c.in(2), {.groups = groups, .epsilon = epsilon})));
  if (c.wants(1)) groupStatistics(c, x, groups, epsilon);
}

// Rows of the elements from an axis on. The deviation is a result of its own, with epsilon in it.
void layerNorm(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  const int64_t axis = c.axis(intArg(c, "axis", 1), x.rank());
  const double epsilon = realArg(c, "epsilon", 1e-5);
  const std::vector<int64_t> inner(x.shape().dims().begin() + axis, x.shape().dims().end());
  const Value scale = c.has(1) ? b.reshaped(c.in(1), inner) : b.splat({.value = 1, .elem = x.kind(), .shape = inner});
  const Value bias = c.has(2) ? b.reshaped(c.in(2), inner) : Value{};
  aglow::Node* node = b.layerNorm(x, scale, bias, {.axis = axis, .epsilon = epsilon});
  c.out(0, node->result(0));
  std::vector<int64_t> outer(x.shape().dims().begin(), x.shape().dims().begin() + axis);
  outer.push_back(1);
  if (c.wants(1)) c.out(1, b.reshaped(node->result(1), outer));
  if (c.wants(2)) c.out(2, b.reshaped(b.reciprocal(node->result(2)), outer));
}

void rmsNorm(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  const int64_t axis = c.axis(intArg(c, "axis", 1), x.rank());
  const std::vector<int64_t> axes = range(axis, x.rank());
  const std::vector<int64_t> inner(x.shape().dims().begin() + axis, x.shape().dims().end());
  const Value mean = b.reduced(b.mul(x, x), "mean", axes);
  const Value inverse = b.reciprocal(b.sqrt(b.add(mean, b.scalarLike(x, realArg(c, "eps", 0)))));
  c.out(0, b.add(b.mul(b.mul(x, inverse), b.reshaped(c.in(1), inner)), b.reshaped(c.in(2), inner)));
  if (c.wants(1)) c.out(1, b.reshaped(inverse, {x.shape().dims().begin(), x.shape().dims().begin() + axis}));
}

// Over the elements from an axis on, as one row.
void softmax(OpImport& c) {
  const Value x = c.in(0);
  const Value rows = asMatrix(c.b, x, c.axis(intArg(c, "axis", 1), x.rank()));
  c.out(c.b.reshaped(c.b.softmax(rows, {.axis = 1}), x.shape().dims()));
}

void logSoftmax(OpImport& c) {
  const Value x = c.in(0);
  const Value rows = asMatrix(c.b, x, c.axis(intArg(c, "axis", 1), x.rank()));
  c.out(c.b.reshaped(c.b.logSoftmax(rows, {.axis = 1}), x.shape().dims()));
}

// Vectors along an axis divided by their norm; those of norm 0 stay.
template <bool L1>
void normalize(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  const int64_t axis = c.axis(intArg(c, "axis", -1), x.rank());
  const Value zero = b.scalarLike(x, 0);
  Value norm = L1 ? b.reduced(b.abs(x), "sum", {axis}) : b.sqrt(b.reduced(b.mul(x, x), "sum", {axis}));
  if (!L1) norm = b.max(norm, b.scalarLike(x, 1e-12));
  c.out(b.where(b.equal(norm, zero), zero, b.div(x, norm)));
}

// The cross entropy of each row against its label, or against a distribution.
void labelCrossEntropy(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0), labels = indices(c, 1);
  if (x.rank() != 2 || labels.type().elements() != x.dim(0))
    fail(Code::BadNode,
         fmt::format("expected a matrix and a label a row, got {} and {}", x.type().text(), labels.type().text()));
  const Value picked = b.gatherElements(x, b.reshaped(labels, {x.dim(0), 1}), {.axis = 1});
  c.out(b.neg(b.log(b.max(b.reshaped(picked, {x.dim(0)}), b.scalarLike(x, 1e-20)))));
}

}  // namespace

std::span<const OpRow> normalizeRows() {
  static constexpr OpRow rows[] = {
      row("SpatialBN", spatialBn),
      row("LRN", lrn),
      row("InstanceNorm", instanceNorm),
      row("GroupNorm", groupNorm),
      row("LayerNorm", layerNorm),
      row("RMSNorm", rmsNorm),
      row("Softmax", softmax),
      row("LogSoftmax", logSoftmax),
      row("Normalize", normalize<false>),
      row("NormalizeL1", normalize<true>),
      row("LabelCrossEntropy", labelCrossEntropy),
  };
  return rows;
}

}  // namespace aglow::caffe2
