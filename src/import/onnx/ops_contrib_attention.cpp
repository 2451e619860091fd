// Attention of com.microsoft with its projections, biases, masks and caches around the record that the standard
// operator becomes, too.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "import/onnx/op_contrib.h"
#include "import/onnx/op_heads.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

// Which operand of the node has which part; -1 for none.
struct Places {
  int bias, mask, addend, pastKey, pastValue;
};

struct Heads {
  Value q, k, v;  // [batch, heads, length, width]
};

// What a mask that counts with numbers other than 0 adds to scores, so that [batch, heads, queries, keys] broadcasts:
// 0, or the value that stands for "hidden". Vectors hold the keys' ends, or their ends and then their starts.
Value maskAddend(OpImport& c, Value mask, Value q, int64_t keys, int64_t past) {
  Builder& b = c.b;
  const int64_t batch = q.dim(0), queries = q.dim(2);
  const auto zero = [&] { return b.scalarLike(mask, 0); };
  Value seen;
  if (mask.rank() == 1) {
    const int64_t count = mask.dim(0);
    const Value key = iota(b, keys, 0, 1, mask.kind());
    const auto bound = [&](int64_t from) { return b.reshaped(sliced(b, mask, 0, from, batch), {batch, 1, 1, 1}); };
    if (count == batch || count == 3 * batch + 2)
      seen = b.less(key, bound(0));
    else if (count == 2 * batch)
      seen = b.logicalAnd(b.less(key, bound(0)), b.lessOrEqual(bound(batch), key));
  } else if (mask.rank() == 2 && mask.shape() == Shape{batch, keys}) {
    seen = b.less(zero(), b.reshaped(mask, {batch, 1, 1, keys}));
  } else if (mask.rank() == 2 && mask.dim(1) == 1 && (mask.dim(0) == 1 || mask.dim(0) == batch)) {
    return Value{};  // stands for no mask at all
  } else if (mask.rank() == 3 && mask.shape() == Shape{batch, queries, keys}) {
    seen = b.less(zero(), b.reshaped(mask, {batch, 1, queries, keys}));
  } else if (mask.rank() == 4 && mask.dim(0) == batch && mask.dim(1) == 1 && mask.dim(2) >= past + queries &&
             mask.dim(3) >= keys) {
    seen = b.less(zero(), sliced(b, sliced(b, mask, 2, past, queries), 3, 0, keys));
  }
  if (!seen)
    fail(Code::BadNode, fmt::format("expected a mask for {} rows of {} queries and {} keys, got {}", batch, queries,
                                    keys, mask.type().text()));
  const Value hidden = b.scalarLike(q, c.real("mask_filter_value", -10000));
  return b.where(seen, b.scalarLike(q, 0), hidden);
}

// The attention itself, after the past of keys and values: [batch, length, heads * width], and the scores that nodes
// may show.
aglow::Node* attended(OpImport& c, const Heads& h, Value mask, Value addend, int64_t past) {
  Builder& b = c.b;
  Value added = mask ? maskAddend(c, mask, h.q, h.k.dim(2), past) : Value{};
  if (addend) added = added ? b.add(added, addend) : addend;
  AttentionAttrs attrs;
  attrs.scale = c.real("scale", 0);
  if (attrs.scale == 0) attrs.scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(h.q.dim(3), 1)));
  attrs.right = c.flag("unidirectional") ? 0 : -1;
  attrs.offset = past;
  attrs.precision = h.q.kind();
  attrs.weights = "masked";
  return b.attention(h.q, h.k, h.v, added, attrs);
}

void refuseSharedBuffers(OpImport& c, std::initializer_list<int> operands) {
  constexpr std::string_view kHint = "export the model with a past of the length that it has, without buffer sharing";
  if (c.flag("past_present_share_buffer"))
    fail(Code::UnsupportedFeature, "a past and a present that share a buffer are not supported", std::string(kHint));
  for (const int operand : operands)
    if (c.has(operand))
      fail(Code::UnsupportedFeature, "lengths of a past inside a buffer, and beams, are not supported",
           std::string(kHint));
}

// ---------------------------------------------------------------- with projections

// [batch, length, q + k + v] as heads, and a past of keys and values [2, batch, heads, length, width] before them.
void selfAttention(OpImport& c, Value projected, Value mask, Value pastState, Value addend) {
  Builder& b = c.b;
  if (c.flag("do_rotary"))
    fail(Code::UnsupportedFeature, "rotary embeddings inside of Attention are not supported",
         "export the model with RotaryEmbedding nodes of their own");
  const int64_t heads = c.integer("num_heads"), width = projected.dim(2);
  std::vector<int64_t> sizes = c.ints("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, width / 3);
  if (sizes.size() != 3 || *std::min_element(sizes.begin(), sizes.end()) < 1 || sizes[0] > width || sizes[1] > width ||
      sizes[2] > width || sizes[0] + sizes[1] + sizes[2] != width || sizes[0] != sizes[1])
    fail(Code::BadNode, fmt::format("expected sizes of q, k and v that add up to {}, got {}", width, listText(sizes)));
  Heads h{splitHeads(b, sliced(b, projected, 2, 0, sizes[0]), heads),
          splitHeads(b, sliced(b, projected, 2, sizes[0], sizes[1]), heads),
          splitHeads(b, sliced(b, projected, 2, sizes[0] + sizes[1], sizes[2]), heads)};
  int64_t past = 0;
  if (pastState) {
    if (pastState.rank() != 5 || pastState.dim(0) != 2)
      fail(Code::BadNode,
           fmt::format("expected a past [2, batch, heads, length, width], got {}", pastState.type().text()));
    const auto part = [&](int64_t index) {
      const std::vector<int64_t>& dims = pastState.shape().dims();
      return b.reshaped(sliced(b, pastState, 0, index, 1), {dims.begin() + 1, dims.end()});
    };
    past = pastState.dim(3);
    h.k = b.concat({part(0), h.k}, {.axis = 2});
    h.v = b.concat({part(1), h.v}, {.axis = 2});
  }
  c.out(0, joinHeads(b, attended(c, h, mask, addend, past)->result(0)));
  if (c.wants(1)) c.out(1, b.concat({unsqueezed(b, h.k, 0), unsqueezed(b, h.v, 0)}, {.axis = 0}));
}

Value projectedBy(OpImport& c, Value x, Value weights, Value bias) {
  if (weights.rank() != 2)
    fail(Code::BadNode, fmt::format("expected a matrix of weights for q, k and v, got {}", weights.type().text()));
  const Value projected = c.b.matMul(x, weights);
  return bias ? c.b.add(projected, bias) : projected;
}

void checkRows(Value x) {
  if (x.rank() != 3) fail(Code::BadNode, fmt::format("expected [batch, length, width], got {}", x.type().text()));
}

void attention(OpImport& c) {
  refuseSharedBuffers(c, {6});
  checkRows(c.in(0));
  selfAttention(c, projectedBy(c, c.in(0), c.in(1), c.optional(2)), c.optional(3), c.optional(4), c.optional(5));
}

void qAttention(OpImport& c) {
  refuseSharedBuffers(c, {});
  checkRows(c.in(0));
  const Value input = standardValue(c, "DequantizeLinear", 13, {c.in(0), c.in(3), c.optional(6)});
  const Value weights = standardValue(c, "DequantizeLinear", 13, {c.in(1), c.in(4), c.optional(7)});
  selfAttention(c, projectedBy(c, input, weights, c.in(2)), c.optional(5), c.optional(8), Value{});
}

// ---------------------------------------------------------------- with projected operands

// One of the tensors packed along the next to last axis of [batch, length, heads, count, width].
Value unpacked(Builder& b, Value x, int64_t index) {
  const Value part = sliced(b, x, 3, index, 1);
  return b.transposed(b.reshaped(part, {x.dim(0), x.dim(1), x.dim(2), x.dim(4)}), {0, 2, 1, 3});
}

// The share of q, k or v of a bias that holds all three, one after the other.
Value biasPart(Builder& b, Value bias, int64_t from, int64_t width) {
  if (bias.rank() != 1 || from + width > bias.dim(0))
    fail(Code::BadNode, fmt::format("expected a bias of at least {} elements for q, k and v, got {}", from + width,
                                    bias.type().text()));
  return sliced(b, bias, 0, from, width);
}

Value biased(Builder& b, Value heads, Value bias, int64_t from) {
  if (!bias) return heads;
  const Value part = biasPart(b, bias, from, heads.dim(1) * heads.dim(3));
  return b.add(heads, b.reshaped(part, {1, heads.dim(1), 1, heads.dim(3)}));
}

Heads headsOf(OpImport& c, Value bias) {
  Builder& b = c.b;
  const int64_t heads = c.integer("num_heads");
  const Value query = c.in(0);
  const auto packed = [&](Value x, int64_t count) { return x.rank() == 5 && x.dim(2) == heads && x.dim(3) == count; };
  if (!c.has(1)) {
    if (packed(query, 3)) return {unpacked(b, query, 0), unpacked(b, query, 1), unpacked(b, query, 2)};
    if (query.rank() != 3) fail(Code::BadNode, fmt::format("expected packed q, k and v, got {}", query.type().text()));
    const std::vector<Value> parts = splitLast(b, query, 3);
    return {splitHeads(b, parts[0], heads), splitHeads(b, parts[1], heads), splitHeads(b, parts[2], heads)};
  }
  Heads h{splitHeads(b, query, heads), {}, {}};
  const int64_t width = query.dim(2);
  h.q = biased(b, h.q, bias, 0);
  const Value key = c.in(1);
  if (packed(key, 2)) {
    h.k = unpacked(b, key, 0);
    h.v = unpacked(b, key, 1);
    return h;
  }
  if (key.rank() == 4) {  // keys and values of the encoder, as they were cached
    h.k = key;
    h.v = c.in(2);
    return h;
  }
  h.k = biased(b, splitHeads(b, key, heads), bias, width);
  h.v = biased(b, splitHeads(b, c.in(2), heads), bias, 2 * width);
  return h;
}

void multiHead(OpImport& c, const Places& at) {
  Builder& b = c.b;
  const Value bias = c.optional(at.bias);
  Heads h = headsOf(c, bias);
  if (!c.has(1) && bias) {
    const int64_t width = h.q.dim(1) * h.q.dim(3);
    h = {biased(b, h.q, bias, 0), biased(b, h.k, bias, width), biased(b, h.v, bias, 2 * width)};
  }
  int64_t past = 0;
  if (c.has(at.pastKey) != c.has(at.pastValue)) fail(Code::BadNode, "past_key and past_value must be given together");
  if (c.has(at.pastKey)) {
    if (c.in(at.pastKey).rank() != 4)
      fail(Code::BadNode,
           fmt::format("expected a past [batch, heads, length, width], got {}", c.in(at.pastKey).type().text()));
    past = c.in(at.pastKey).dim(2);
    h.k = b.concat({c.in(at.pastKey), h.k}, {.axis = 2});
    h.v = b.concat({c.in(at.pastValue), h.v}, {.axis = 2});
  }
  aglow::Node* node = attended(c, h, c.optional(at.mask), c.optional(at.addend), past);
  c.out(0, joinHeads(b, node->result(0)));
  c.out(1, h.k);
  c.out(2, h.v);
  c.out(3, node->result(1));
}

void multiHeadAttention(OpImport& c) {
  refuseSharedBuffers(c, {8, 9});
  multiHead(c, {.bias = 3, .mask = 4, .addend = 5, .pastKey = 6, .pastValue = 7});
}

void decoderMaskedMultiHeadAttention(OpImport& c) {
  refuseSharedBuffers(c, {7, 8, 9});
  multiHead(c, {.bias = 10, .mask = 3, .addend = 4, .pastKey = 5, .pastValue = 6});
}

// ---------------------------------------------------------------- without padding

// Where the tokens of a batch lie in it, i32[tokens]: the first `tokens` of the offsets.
Value tokenPlaces(OpImport& c, int offsets, int64_t tokens) {
  const Value all = c.in(offsets);
  if (all.rank() != 2 || all.type().elements() < tokens)
    fail(Code::BadNode, fmt::format("expected [batch, length] places of {} tokens, got {}", tokens, all.type().text()));
  return sliced(c.b, c.b.reshaped(all, {all.type().elements()}), 0, 0, tokens);
}

// [tokens, width] as [batch, length, width] with zeros between.
Value padded(OpImport& c, Value x, int offsets) {
  const Value all = c.in(offsets);
  const Value places = tokenPlaces(c, offsets, x.dim(0));
  const Value zeros = c.b.splat({.elem = x.kind(), .shape = {all.type().elements(), x.dim(1)}});
  return c.b.reshaped(c.b.scatter(zeros, places, x), {all.dim(0), all.dim(1), x.dim(1)});
}

void checkTokens(Value x) {
  if (x.rank() != 2) fail(Code::BadNode, fmt::format("expected [tokens, width], got {}", x.type().text()));
}

// Attention among the tokens of each sequence, of [tokens, width] operands.
void packedAttended(OpImport& c, Value q, Value k, Value v, int offsets, int addend) {
  Builder& b = c.b;
  const int64_t heads = c.integer("num_heads");
  const Heads h{splitHeads(b, padded(c, q, offsets), heads), splitHeads(b, padded(c, k, offsets), heads),
                splitHeads(b, padded(c, v, offsets), heads)};
  const Value ends = c.in(offsets + 1);
  const int64_t batch = h.q.dim(0);
  if (ends.shape() != Shape{batch + 1})
    fail(Code::BadNode, fmt::format("expected {} cumulated lengths, got {}", batch + 1, ends.type().text()));
  const Value lengths = b.sub(sliced(b, ends, 0, 1, batch), sliced(b, ends, 0, 0, batch));
  const Value y = joinHeads(b, attended(c, h, lengths, c.optional(addend), 0)->result(0));
  const Value rows = b.reshaped(y, {y.dim(0) * y.dim(1), y.dim(2)});
  c.out(b.gather(rows, tokenPlaces(c, offsets, q.dim(0))));
}

void packedMultiHeadAttention(OpImport& c) {
  Builder& b = c.b;
  std::vector<Value> parts{c.in(0), c.optional(1), c.optional(2)};
  if (!c.has(1)) {
    const Value packed = c.in(0);
    if (packed.rank() != 4 || packed.dim(2) != 3)
      fail(Code::BadNode, fmt::format("expected [tokens, heads, 3, width], got {}", packed.type().text()));
    for (int64_t i = 0; i < 3; ++i)
      parts[static_cast<size_t>(i)] =
          b.reshaped(sliced(b, packed, 2, i, 1), {packed.dim(0), packed.dim(1) * packed.dim(3)});
  }
  int64_t from = 0;
  for (Value& part : parts) {
    checkTokens(part);
    if (c.has(3)) part = b.add(part, biasPart(b, c.in(3), from, part.dim(1)));
    from += part.dim(1);
  }
  packedAttended(c, parts[0], parts[1], parts[2], 4, 6);
}

void packedAttention(OpImport& c) {
  checkTokens(c.in(0));
  const Value projected = projectedBy(c, c.in(0), c.in(1), c.in(2));
  std::vector<int64_t> sizes = c.ints("qkv_hidden_sizes", std::vector<int64_t>(3, projected.dim(1) / 3));
  if (sizes.size() != 3 || sizes[0] < 1 || sizes[1] < 1 || sizes[2] < 1 || sizes[0] > projected.dim(1) ||
      sizes[1] > projected.dim(1) || projected.dim(1) - sizes[0] - sizes[1] != sizes[2])
    fail(Code::BadNode,
         fmt::format("expected sizes of q, k and v that add up to {}, got {}", projected.dim(1), listText(sizes)));
  const auto part = [&](int64_t from, int64_t width) { return sliced(c.b, projected, 1, from, width); };
  packedAttended(c, part(0, sizes[0]), part(sizes[0], sizes[1]), part(sizes[0] + sizes[1], sizes[2]), 3, 5);
}

void restorePadding(OpImport& c) {
  checkTokens(c.in(0));
  c.out(padded(c, c.in(0), 1));
}

// The number of tokens decides the result's shape, so the counts must be known.
void removePadding(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  checkRows(x);
  const std::vector<int64_t> counts = c.constantInts(1);
  const int64_t batch = x.dim(0), length = x.dim(1);
  std::vector<int64_t> tokens, padding, ends{0};
  for (const int64_t count : counts)
    if (count < 0 || count > length)
      fail(Code::BadNode, fmt::format("expected counts from 0 to {}, got {}", length, listText(counts)));
  if (static_cast<int64_t>(counts.size()) != batch)
    fail(Code::BadNode, fmt::format("expected {} counts, got {}", batch, counts.size()));
  for (int64_t row = 0; row < batch; ++row) {
    const int64_t count = counts[static_cast<size_t>(row)];
    for (int64_t i = 0; i < length; ++i) (i < count ? tokens : padding).push_back(row * length + i);
    ends.push_back(ends.back() + count);
  }
  const int64_t longest = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  c.out(0, b.gather(b.reshaped(x, {batch * length, x.dim(2)}), b.ints(tokens)));
  tokens.insert(tokens.end(), padding.begin(), padding.end());
  const auto list = [&](std::vector<int64_t> dims, const std::vector<int64_t>& values) {
    return b.constant(Tensor::of(Type(ElemKind::Int32, Shape(std::move(dims))), values));
  };
  c.out(1, list({batch, length}, tokens));
  c.out(2, list({batch + 1}, ends));
  c.out(3, list({1}, {longest}));
}

}  // namespace

std::span<const OpRow> contribAttentionRows() {
  static constexpr OpRow rows[] = {
      microsoft("Attention", attention),
      microsoft("QAttention", qAttention),
      microsoft("MultiHeadAttention", multiHeadAttention),
      microsoft("DecoderMaskedMultiHeadAttention", decoderMaskedMultiHeadAttention),
      microsoft("PackedAttention", packedAttention),
      microsoft("PackedMultiHeadAttention", packedMultiHeadAttention),
      microsoft("RestorePadding", restorePadding),
      microsoft("RemovePadding", removePadding),
  };
  return rows;
}

}  // namespace aglow::onnx
