// Larger pieces of language and vision models of com.microsoft: mixtures of experts, recurrences that the standard has
// in a plainer form, multimodal positions, crops of images.
#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/op_contrib.h"
#include "import/onnx/op_heads.h"
#include "import/onnx/op_sample.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

// ---------------------------------------------------------------- mixtures of experts

// How much each expert counts for each token, [tokens, experts]: the likeliest k, all others nothing.
Value routing(OpImport& c, Value router) {
  Builder& b = c.b;
  const int64_t k = c.integer("k", 1), experts = router.dim(1);
  if (k < 1 || k > experts) fail(Code::BadNode, fmt::format("expected 'k' from 1 to {}, got {}", experts, k));
  const Value likely = b.softmax(widened(b, router), {.axis = 1});
  aglow::Node* top = b.topK(likely, {.k = k, .axis = 1});
  Value share = top->result(0);
  if (c.flag("normalize_routing_weights")) share = b.div(share, b.reduced(share, "sum", {1}));
  const Value zeros = b.splat({.elem = share.kind(), .shape = router.shape().dims()});
  return b.scatterElements(zeros, top->result(1), share, {.axis = 1});
}

// Tokens [1, tokens, width] through a layer of each expert, weights [experts, outputs, width]: [experts, tokens, ...].
Value expertLayer(OpImport& c, Value x, int weights, int bias) {
  Builder& b = c.b;
  const Value w = c.in(weights);
  if (w.rank() != 3)
    fail(Code::BadNode, fmt::format("expected weights [experts, outputs, inputs], got {}", w.type().text()));
  const Value y = b.matMul(x, b.transposed(w, {0, 2, 1}));
  if (!c.has(bias)) return y;
  if (c.in(bias).shape() != Shape{w.dim(0), w.dim(1)})
    fail(Code::BadNode, fmt::format("expected a bias [{},{}], got {}", w.dim(0), w.dim(1), c.in(bias).type().text()));
  return b.add(y, unsqueezed(b, c.in(bias), 1));
}

// gate * sigmoid(alpha * gate) * (linear + beta), both held by a limit.
Value swiGlu(OpImport& c, Value gate, Value linear) {
  Builder& b = c.b;
  if (c.hasAttr("swiglu_limit")) {
    const double limit = c.real("swiglu_limit");
    gate = b.min(gate, b.scalarLike(gate, limit));
    linear = b.clip(linear, b.scalarLike(linear, -limit), b.scalarLike(linear, limit));
  }
  const double beta = c.real("activation_beta", 0);
  if (beta != 0) linear = b.add(linear, b.scalarLike(linear, beta));
  return b.mul(b.swish(gate, {.alpha = c.real("activation_alpha", 1)}), linear);
}

Value expertActivation(OpImport& c, Value x, Value hidden) {
  Builder& b = c.b;
  const std::string name = c.word("activation_type", "relu");
  const int64_t fusion = c.integer("swiglu_fusion", 0);
  if (fusion < 0 || fusion > 2)
    fail(Code::BadNode, fmt::format("expected 'swiglu_fusion' from 0 to 2, got {}", fusion));
  if (name == "swiglu" && fusion != 0) {
    if (fusion == 2) {
      const std::vector<Value> halves = splitLast(b, hidden, 2);
      return swiGlu(c, halves[0], halves[1]);
    }
    const int64_t width = hidden.dim(2) / 2;
    if (2 * width != hidden.dim(2))
      fail(Code::BadNode, fmt::format("expected pairs along the last axis, got {}", hidden.type().text()));
    return swiGlu(c, sliced(b, hidden, 2, 0, width, 2), sliced(b, hidden, 2, width == 0 ? 0 : 1, width, 2));
  }
  const Value third = c.has(6) ? expertLayer(c, x, 6, 7) : Value{};
  if (name == "swiglu") {
    if (!third) fail(Code::BadNode, "swiglu without fusion needs a third layer");
    return swiGlu(c, hidden, third);
  }
  Value y;
  if (name == "relu")
    y = b.relu(hidden);
  else if (name == "gelu")
    y = b.geluTanh(hidden);
  else if (name == "silu")
    y = b.swish(hidden);
  else if (name == "identity")
    y = hidden;
  else
    fail(Code::BadNode, fmt::format("expected 'activation_type' relu, gelu, silu, swiglu or identity, got '{}'", name));
  return third ? b.mul(y, third) : y;
}

// All experts see all tokens; what was not chosen for a token counts nothing.
void mixtureOfExperts(OpImport& c) {
  Builder& b = c.b;
  if (c.flag("use_sparse_mixer")) fail(Code::UnsupportedFeature, "routing by a sparse mixer is not supported");
  const Value x = c.in(0), router = c.in(1);
  if (x.rank() < 2 || router.rank() != 2 || x.dim(x.rank() - 1) < 1 ||
      x.type().elements() != router.dim(0) * x.dim(x.rank() - 1))
    fail(Code::BadNode, fmt::format("expected tokens and a row of scores for each, got {} and {}", x.type().text(),
                                    router.type().text()));
  const Value tokens = b.reshaped(x, {1, router.dim(0), x.dim(x.rank() - 1)});
  const Value y = expertLayer(c, expertActivation(c, tokens, expertLayer(c, tokens, 2, 3)), 4, 5);
  const Value share = unsqueezed(b, b.transposed(routing(c, router), {1, 0}), 2);
  const Value sum = b.reduced(b.mul(widened(b, y), share), "sum", {0}, false);
  c.out(b.reshaped(b.casted(sum, x.kind()), x.shape().dims()));
}

// ---------------------------------------------------------------- recurrences

void asStandard27(OpImport& c) {
  std::vector<Imported> operands;
  for (int i = 0; i < c.inputs(); ++i) operands.push_back(c.operand(i));
  std::vector<Imported> results = c.standard(standardNode(c, c.node.opType), 27, std::move(operands));
  for (size_t i = 0; i < results.size(); ++i) c.out(static_cast<int>(i), std::move(results[i]));
}

void refuse(const OpImport& c, std::string_view attribute, int64_t plain) {
  if (const int64_t value = c.integer(attribute, plain); value != plain)
    fail(Code::UnsupportedFeature, fmt::format("'{}' = {} is not supported; {} is", attribute, value, plain));
}

void linearAttention(OpImport& c) {
  refuse(c, "state_window", 0);
  asStandard27(c);
}

void causalConvWithState(OpImport& c) {
  refuse(c, "state_window", 0);
  refuse(c, "channels_last", 0);
  refuse(c, "dilation", 1);
  refuse(c, "ndim", 1);
  asStandard27(c);
}

// ---------------------------------------------------------------- positions and images

// Three positions a token (time, height, width), each of which gives some of the angles.
void multimodalRotaryEmbedding(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0), positions = c.in(1), cosines = c.in(2), sines = c.in(3);
  const std::vector<int64_t> sections = c.ints("mrope_section");
  if ((x.rank() != 3 && x.rank() != 4) || positions.rank() != 3 || positions.dim(0) != 3 || cosines.rank() != 2 ||
      sines.shape() != cosines.shape() || sections.size() != 3)
    fail(Code::BadNode,
         fmt::format("expected heads, [3, batch, length] positions, tables of angles and 3 sections, got "
                     "{}, {}, {} and {}",
                     x.type().text(), positions.type().text(), cosines.type().text(), listText(sections)));
  const int64_t half = cosines.dim(1), batch = x.dim(0), length = positions.dim(2);
  if (std::any_of(sections.begin(), sections.end(), [&](int64_t s) { return s < 0 || s > half; }) ||
      sections[0] + sections[1] + sections[2] != half)
    fail(Code::BadNode, fmt::format("expected sections that add up to {}, got {}", half, listText(sections)));
  // Which of the three positions an angle comes from.
  const bool mixed = c.flag("mrope_layout");
  std::vector<int64_t> stream(static_cast<size_t>(half), 0);
  for (int64_t i = 0; i < half; ++i) {
    auto& from = stream[static_cast<size_t>(i)];
    if (!mixed)
      from = i < sections[0] ? 0 : i < sections[0] + sections[1] ? 1 : 2;
    else if (i % 3 != 0 && i < 3 * sections[static_cast<size_t>(i % 3)])
      from = i % 3;
  }
  const auto factors = [&](Value table) {
    const Value all = b.gather(table, positions);  // [3, batch, length, half]
    Value chosen;
    for (int64_t s = 0; s < 3; ++s) {
      std::vector<int64_t> mine;
      for (const int64_t from : stream) mine.push_back(from == s ? 1 : 0);
      const Value here = b.constant(Tensor::of(Type(ElemKind::Bool, Shape{half}), mine));
      const Value part = b.reshaped(sliced(b, all, 0, s, 1), {batch, 1, length, half});
      chosen = chosen ? b.where(here, part, chosen) : part;
    }
    return chosen;
  };
  const int64_t heads = c.integer("num_heads", 0);
  const Value split =
      x.rank() == 4 ? x : splitHeads(b, x, heads > 0 ? heads : x.dim(2) / std::max<int64_t>(2 * half, 1));
  const int64_t width = split.dim(3);
  if (2 * half > width || split.dim(2) != length)
    fail(Code::BadNode, fmt::format("expected heads of at least {} elements for {} tokens, got {}", 2 * half, length,
                                    split.type().text()));
  Value y = rotatedPairs(b, sliced(b, split, 3, 0, 2 * half), factors(cosines), factors(sines), c.flag("interleaved"));
  if (2 * half < width) y = b.concat({y, sliced(b, split, 3, 2 * half, width - 2 * half)}, {.axis = 3});
  c.out(x.rank() == 4 ? y : joinHeads(b, y));
}

// Along one axis of a region: the places of its samples, and whether they lie in the image.
struct CropAxis {
  Value place, inside;
};

CropAxis cropAxis(Builder& b, Value first, Value last, int64_t count, int64_t extent, int axis) {
  const Value size = b.scalarLike(first, static_cast<double>(extent - 1));
  CropAxis result;
  if (count > 1) {
    const Value step = b.div(b.mul(b.sub(last, first), size), b.scalarLike(first, static_cast<double>(count - 1)));
    result.place = b.add(b.mul(first, size), b.mul(iota(b, count, axis, 3, first.kind()), step));
  } else {
    result.place = b.mul(b.mul(b.add(first, last), b.scalarLike(first, 0.5)), size);
  }
  result.inside = b.logicalAnd(b.lessOrEqual(b.scalarLike(first, 0), result.place), b.lessOrEqual(result.place, size));
  return result;
}

void cropAndResize(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0), rois = c.in(1), batches = c.in(2);
  const std::vector<int64_t> size = c.constantInts(3);
  const std::string mode = c.word("mode", "bilinear");
  if (x.rank() != 4 || rois.rank() != 2 || rois.dim(1) != 4 || batches.shape() != Shape{rois.dim(0)} ||
      size.size() != 2 || size[0] < 1 || size[1] < 1)
    fail(Code::BadNode,
         fmt::format("expected an image, [regions, 4], an image number for each and 2 extents, got {}, {}, "
                     "{} and {}",
                     x.type().text(), rois.type().text(), batches.type().text(), listText(size)));
  if (mode != "bilinear" && mode != "nearest")
    fail(Code::BadNode, fmt::format("expected 'mode' bilinear or nearest, got '{}'", mode));
  const Value wide = widened(b, x), regions = b.casted(rois, wide.kind());
  const auto edge = [&](int64_t column) { return b.reshaped(sliced(b, regions, 1, column, 1), {rois.dim(0), 1, 1}); };
  const CropAxis rows = cropAxis(b, edge(0), edge(2), size[0], x.dim(2), 1);
  const CropAxis columns = cropAxis(b, edge(1), edge(3), size[1], x.dim(3), 2);
  const auto taps = [&](Value place, int64_t extent) -> std::vector<Tap> {
    if (mode == "bilinear") return linearTaps(b, place, extent);
    const Value whole = b.floor(b.add(place, b.scalarLike(place, 0.5)));
    const Value last = b.scalarLike(place, static_cast<double>(extent - 1));
    return {{b.casted(b.clip(whole, b.scalarLike(place, 0), last), ElemKind::Int64), {}}};
  };
  const Value image = b.casted(b.reshaped(batches, {rois.dim(0), 1, 1}), ElemKind::Int64);
  const Value base = b.mul(image, b.scalar(ElemKind::Int64, static_cast<double>(x.dim(2) * x.dim(3))));
  const Value sampled = sampledRows(b, rowsOf(b, wide), base,
                                    {taps(rows.place, x.dim(2)), taps(columns.place, x.dim(3))}, {x.dim(2), x.dim(3)});
  const Value inside = unsqueezed(b, b.logicalAnd(rows.inside, columns.inside), 3);
  const Value y = b.where(inside, sampled, b.scalarLike(sampled, c.real("extrapolation_value", 0)));
  c.out(b.casted(b.transposed(y, {0, 3, 1, 2}), x.kind()));
}

}  // namespace

std::span<const OpRow> contribModelRows() {
  static constexpr OpRow rows[] = {
      microsoft("MoE", mixtureOfExperts),
      microsoft("LinearAttention", linearAttention),
      microsoft("CausalConvWithState", causalConvWithState),
      microsoft("MRotaryEmbedding", multimodalRotaryEmbedding),
      microsoft("CropAndResize", cropAndResize),
  };
  return rows;
}

}  // namespace aglow::onnx
