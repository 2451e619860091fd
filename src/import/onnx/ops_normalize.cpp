// Normalisations over batches, layers, instances and groups.
#include <fmt/format.h>

#include "graph/batch_norm.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

// With the batch's own statistics, and the running ones moved towards them.
void batchNormInTraining(OpImport& c, double epsilon) {
  const TrainedBatchNorm trained = trainedBatchNorm(c.b, c.in(0), c.in(1), c.in(2), epsilon);
  const double momentum = c.real("momentum", 0.9);
  c.out(0, trained.y);
  if (c.wants(1)) c.out(1, runningStatistic(c.b, c.in(3), trained.mean, momentum));
  if (c.wants(2)) c.out(2, runningStatistic(c.b, c.in(4), trained.variance, momentum));
}

// With statistics for each element of an item instead of each channel.
void elementBatchNorm(OpImport& c, double epsilon) {
  Builder& b = c.b;
  const Value x = c.in(0), wide = widened(b, x);
  const auto operand = [&](int i) { return b.casted(c.in(i), wide.kind()); };
  const Value deviation = b.sqrt(b.add(operand(4), b.scalarLike(wide, epsilon)));
  const Value y = b.add(b.mul(b.div(b.sub(wide, operand(3)), deviation), operand(1)), operand(2));
  if (y.shape() != x.shape())
    fail(Code::BadNode,
         fmt::format("expected parameters that broadcast to {}, got {}", x.type().text(), c.in(1).type().text()));
  c.out(b.casted(y, x.kind()));
}

void batchNormalization(OpImport& c) {
  const double epsilon = c.real("epsilon", 1e-5);
  if (c.in(0).rank() < 2)
    fail(Code::BadNode, fmt::format("expected [batch, channel, ...], got {}", c.in(0).type().text()));
  if (!c.flag("spatial", true)) return elementBatchNorm(c, epsilon);
  if (c.version >= 14 && c.flag("training_mode")) return batchNormInTraining(c, epsilon);
  if (c.version < 7 && !c.flag("is_test"))
    fail(Code::UnsupportedFeature, "BatchNormalization for training (is_test = 0) is not supported");
  for (int i = 1; i < static_cast<int>(c.node.outputs.size()); ++i)
    if (c.wants(i)) fail(Code::UnsupportedFeature, "results for training are only supported with training_mode = 1");
  c.out(c.b.batchNorm(c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), {.epsilon = epsilon}));
}

void instanceNormalization(OpImport& c) {
  c.out(c.b.instanceNorm(c.in(0), c.in(1), c.in(2), {.epsilon = c.real("epsilon", 1e-5)}));
}

// Later opsets let the statistics' precision be chosen; f32 or wider is what the records compute in.
void checkStash(const OpImport& c) {
  if (c.hasAttr("stash_type") && !isFloat(c.elem("stash_type")))
    fail(Code::BadNode,
         fmt::format("expected 'stash_type' to be a float type, got {}", elemName(c.elem("stash_type"))));
}

void layerNormalization(OpImport& c) {
  checkStash(c);
  // Before opset 17 it is onnxruntime's operator, whose input may be of another kind than its parameters and result.
  const ElemKind to = c.in(1).kind();
  const bool mixed = c.version < 17 && c.in(0).kind() != to;
  const Value x = mixed ? widened(c.b, c.in(0)) : c.in(0);
  const auto parameter = [&](Value v) { return mixed && v ? c.b.casted(v, x.kind()) : v; };
  aglow::Node* node =
      c.b.layerNorm(x, parameter(c.in(1)), parameter(c.optional(2)),
                    {.axis = c.axis(c.integer("axis", -1), x.rank()), .epsilon = c.real("epsilon", 1e-5)});
  const ElemKind stash = c.elem("stash_type", ElemKind::Float32);
  c.out(0, mixed ? c.b.casted(node->result(0), to) : node->result(0));
  for (int i = 1; i < 3; ++i)
    if (c.wants(i)) c.out(i, c.b.casted(node->result(i), stash));
}

void rmsNormalization(OpImport& c) {
  checkStash(c);
  const ElemKind to = c.in(1).kind();
  const Value x = c.in(0).kind() != to ? widened(c.b, c.in(0)) : c.in(0);
  const Value y = c.b.rmsNorm(x, c.b.casted(c.in(1), x.kind()),
                              {.axis = c.axis(c.integer("axis", -1), x.rank()), .epsilon = c.real("epsilon", 1e-5)});
  c.out(c.b.casted(y, to));
}

void groupNormalization(OpImport& c) {
  checkStash(c);
  const Value x = c.in(0);
  const int64_t groups = c.integer("num_groups");
  if (x.rank() < 2 || groups < 1 || x.dim(1) % groups != 0)
    fail(Code::BadNode,
         fmt::format("expected 'num_groups' that divide the channels of {}, got {}", x.type().text(), groups));
  // Until opset 20, one scale and bias a group instead of a channel.
  const auto perChannel = [&](Value v) {
    if (c.version >= 21) return v;
    if (v.shape() != Shape{groups})
      fail(Code::BadNode, fmt::format("expected one value for each of {} groups, got {}", groups, v.type().text()));
    const Value column = c.b.reshaped(v, {groups, 1});
    return c.b.reshaped(c.b.expand(column, {.shape = {groups, x.dim(1) / groups}}), {x.dim(1)});
  };
  c.out(c.b.groupNorm(x, perChannel(c.in(1)), perChannel(c.in(2)),
                      {.groups = groups, .epsilon = c.real("epsilon", 1e-5)}));
}

}  // namespace

std::span<const OpRow> normalizeRows() {
  static constexpr OpRow rows[] = {
      {"BatchNormalization", batchNormalization}, {"InstanceNormalization", instanceNormalization},
      {"LayerNormalization", layerNormalization}, {"RMSNormalization", rmsNormalization},
      {"GroupNormalization", groupNormalization},
  };
  return rows;
}

}  // namespace aglow::onnx
