// Normalisations of com.microsoft with what is added before them and multiplied after them, and those operators that
// onnxruntime puts into the standard domain.
#include <fmt/format.h>

#include "import/onnx/op_contrib.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

constexpr double kTinyEpsilon = 1e-12;

int64_t lastAxis(Value x) {
  if (x.rank() == 0) fail(Code::BadNode, "expected a tensor with axes, got a scalar");
  return x.rank() - 1;
}

// Input, skip and a bias in one sum, rounded to the input's kind once.
Value skipSum(OpImport& c, int bias) {
  Builder& b = c.b;
  const Value x = c.in(0);
  Value sum = b.add(widened(b, x), widened(b, c.in(1)));
  if (sum.shape() != x.shape())
    fail(Code::BadNode,
         fmt::format("expected a 'skip' that broadcasts to {}, got {}", x.type().text(), c.in(1).type().text()));
  if (c.has(bias)) sum = b.add(sum, widened(b, c.in(bias)));
  return b.casted(sum, x.kind());
}

void skipLayerNormalization(OpImport& c) {
  const Value sum = skipSum(c, 4);
  aglow::Node* node =
      c.b.layerNorm(sum, c.in(2), c.optional(3), {.axis = lastAxis(sum), .epsilon = c.real("epsilon", kTinyEpsilon)});
  c.out(0, node->result(0));
  for (int i = 1; i < 3; ++i)
    if (c.wants(i)) c.out(i, c.b.casted(node->result(i), ElemKind::Float32));
  c.out(3, sum);
}

// 1 / root mean square over the axes from `axis` on.
Value inverseRms(Builder& b, Value x, int64_t axis, double epsilon) {
  const Value wide = widened(b, x);
  const Value mean = b.reduced(b.mul(wide, wide), "mean", range(axis, x.rank()));
  return b.reciprocal(b.sqrt(b.add(mean, b.scalarLike(mean, epsilon))));
}

void skipSimplifiedLayerNormalization(OpImport& c) {
  const Value sum = skipSum(c, 3);
  const int64_t axis = lastAxis(sum);
  const double epsilon = c.real("epsilon", kTinyEpsilon);
  c.out(0, c.b.rmsNorm(sum, c.in(2), {.axis = axis, .epsilon = epsilon}));
  if (c.wants(1)) c.out(1, c.b.reduced(widened(c.b, sum), "mean", {axis}));
  if (c.wants(2)) c.out(2, inverseRms(c.b, sum, axis, epsilon));
  c.out(3, sum);
}

// RMSNormalization with the factors that it divided by as a second result.
void simplifiedLayerNormalization(OpImport& c) {
  constexpr int64_t kOpset = 23;
  c.out(0, standardValue(c, "RMSNormalization", kOpset, {c.in(0), c.in(1)}));
  const int64_t axis = c.axis(c.integer("axis", -1), c.in(0).rank());
  if (c.wants(1)) c.out(1, inverseRms(c.b, c.in(0), axis, c.real("epsilon", 1e-5)));
}

// How many words a row of a mask has, i32[batch].
Value maskIndex(OpImport& c, Value ids, int mask) {
  if (!c.has(mask)) return c.b.splat({.elem = ElemKind::Int32, .shape = {ids.dim(0)}});
  const Value words = c.b.equal(c.in(mask), c.b.scalarLike(c.in(mask), 1));
  return c.b.reduced(c.b.casted(words, ElemKind::Int32), "sum", range(1, words.rank()), false);
}

struct Embeddings {
  Value word, position, segment, gamma, beta;
};

void embedded(OpImport& c, const Embeddings& e, int positionIds) {
  Builder& b = c.b;
  const Value ids = c.in(0);
  if (ids.rank() != 2) fail(Code::BadNode, fmt::format("expected [batch, length] of words, got {}", ids.type().text()));
  const Value places = c.has(positionIds) ? c.in(positionIds) : iota(b, ids.dim(1));
  Value sum = b.add(b.gather(e.word, ids), b.gather(e.position, places));
  if (c.has(1) != static_cast<bool>(e.segment))
    fail(Code::BadNode, "segment_ids and segment_embedding must be given together");
  if (e.segment) sum = b.add(sum, b.gather(e.segment, c.in(1)));
  aglow::Node* node =
      b.layerNorm(sum, e.gamma, e.beta, {.axis = lastAxis(sum), .epsilon = c.real("epsilon", kTinyEpsilon)});
  c.out(0, node->result(0));
  c.out(1, maskIndex(c, ids, 7));
  if (c.wants(2)) c.out(2, sum);
}

void embedLayerNormalization(OpImport& c) {
  embedded(c, {.word = c.in(2), .position = c.in(3), .segment = c.optional(4), .gamma = c.in(5), .beta = c.in(6)}, 8);
}

void qEmbedLayerNormalization(OpImport& c) {
  const auto real = [&](int operand, int scale, int zero) {
    if (!c.has(operand)) return Value{};
    return c.b.dequantizeLinear(c.in(operand), asScalar(c.b, c.in(scale), "scale"),
                                asScalar(c.b, c.in(zero), "zero point"), {.axis = 0, .to = ElemKind::Float32});
  };
  constexpr int kNoPositions = 1000;
  embedded(c,
           {.word = real(2, 8, 13),
            .position = real(3, 9, 14),
            .segment = real(4, 10, 15),
            .gamma = real(5, 11, 16),
            .beta = real(6, 12, 17)},
           kNoPositions);
}

// After a sum with `skip` and `bias` where the operator has them.
void groupNorm(OpImport& c, bool skips) {
  Builder& b = c.b;
  const Value x = c.in(0);
  if (x.rank() < 3)
    fail(Code::BadNode, fmt::format("expected an image with batch and channels, got {}", x.type().text()));
  const bool last = c.flag("channels_last", true);
  const int64_t channels = x.dim(last ? x.rank() - 1 : 1), groups = c.integer("groups");
  if (groups < 1 || channels % groups != 0)
    fail(Code::BadNode, fmt::format("expected 'groups' that divide {} channels, got {}", channels, groups));
  const auto perChannel = [&](Value v) { return last ? v : alongAxis(b, v, 1, x.rank()); };
  Value sum = x;
  if (skips) {
    Value skip = c.in(3);
    if (skip.rank() == 2) {
      std::vector<int64_t> dims(static_cast<size_t>(x.rank()), 1);
      dims[0] = skip.dim(0);
      dims[last ? dims.size() - 1 : 1] = skip.dim(1);
      skip = b.reshaped(skip, std::move(dims));
    }
    sum = b.add(sum, skip);
    if (c.has(4)) sum = b.add(sum, perChannel(c.in(4)));
    if (sum.shape() != x.shape())
      fail(Code::BadNode,
           fmt::format("expected a 'skip' that broadcasts to {}, got {}", x.type().text(), c.in(3).type().text()));
  }
  const Value planar = last ? channelsFirst(b, sum) : sum;
  const Value wide = widened(b, planar);
  Value y = b.groupNorm(wide, b.casted(c.in(1), wide.kind()), b.casted(c.in(2), wide.kind()),
                        {.groups = groups, .epsilon = c.real("epsilon", 1e-5)});
  const int64_t activation = c.integer("activation");
  if (activation != 0 && activation != 1)
    fail(Code::BadNode, fmt::format("expected 'activation' 0 or 1, got {}", activation));
  if (activation == 1) y = b.swish(y);
  y = b.casted(y, x.kind());
  c.out(0, last ? channelsLast(b, y) : y);
  if (skips) c.out(1, sum);
}

void plainGroupNorm(OpImport& c) { groupNorm(c, false); }
void skipGroupNorm(OpImport& c) { groupNorm(c, true); }

// Rows of as many elements as there are scales, normalised by themselves, times a function of the gate.
void gatedRmsNorm(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0), scale = c.in(1), gate = widened(b, c.in(2));
  const int64_t width = scale.type().elements();
  if (scale.rank() != 1 || width < 1 || x.dim(static_cast<int>(lastAxis(x))) % width != 0)
    fail(Code::BadNode, fmt::format("expected scales whose number divides the last axis of {}, got {}", x.type().text(),
                                    scale.type().text()));
  const std::string name = c.word("activation", "silu");
  if (name != "silu" && name != "swish" && name != "sigmoid")
    fail(Code::BadNode, fmt::format("expected 'activation' silu, swish or sigmoid, got '{}'", name));
  const Value rows = b.reshaped(widened(b, x), {x.type().elements() / width, width});
  const Value y = b.rmsNorm(rows, b.casted(scale, rows.kind()), {.axis = 1, .epsilon = c.real("epsilon", 1e-5)});
  const Value factor = name == "sigmoid" ? b.sigmoid(gate) : b.swish(gate);
  c.out(b.casted(b.mul(b.reshaped(y, x.shape().dims()), factor), x.kind()));
}

void branchwiseRmsNorm(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  const int64_t branches = c.integer("num_branches", 0), last = lastAxis(x);
  std::vector<int64_t> dims = x.shape().dims();
  if (branches > 0) {
    if (dims.back() % branches != 0)
      fail(Code::BadNode, fmt::format("expected a last axis that divides into {}, got {}", branches, x.type().text()));
    dims.back() /= branches;
    dims.insert(dims.begin() + last, branches);
  }
  if (dims.size() < 2) fail(Code::BadNode, fmt::format("expected [..., branch, width], got {}", x.type().text()));
  const int64_t width = dims.back(), count = dims[dims.size() - 2];
  const Value rows = b.reshaped(widened(b, x), dims);
  const Value inverse = inverseRms(b, rows, rows.rank() - 1, c.real("epsilon", 1e-5));
  Value y = b.mul(rows, inverse);
  if (c.has(1)) {
    const Value scale = b.casted(c.in(1), rows.kind());
    const bool shared = scale.shape() == Shape{width};
    if (!shared && scale.type().elements() != width * count)
      fail(Code::BadNode,
           fmt::format("expected scales for {} branches of {}, got {}", count, width, scale.type().text()));
    y = b.mul(y, shared ? scale : b.reshaped(scale, {count, width}));
  }
  c.out(b.casted(b.reshaped(y, x.shape().dims()), x.kind()));
}

}  // namespace

std::span<const OpRow> contribNormRows() {
  static constexpr OpRow rows[] = {
      {"SimplifiedLayerNormalization", simplifiedLayerNormalization},
      microsoft("SimplifiedLayerNormalization", simplifiedLayerNormalization),
      microsoft("SkipLayerNormalization", skipLayerNormalization),
      microsoft("SkipSimplifiedLayerNormalization", skipSimplifiedLayerNormalization),
      microsoft("EmbedLayerNormalization", embedLayerNormalization),
      microsoft("QEmbedLayerNormalization", qEmbedLayerNormalization),
      microsoft("GroupNorm", plainGroupNorm),
      microsoft("SkipGroupNorm", skipGroupNorm),
      microsoft("GatedRMSNorm", gatedRmsNorm),
      microsoft("BranchwiseRMSNorm", branchwiseRmsNorm),
  };
  return rows;
}

}  // namespace aglow::onnx
