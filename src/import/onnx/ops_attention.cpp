// Attention and rotary embeddings.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "import/onnx/op_heads.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

// The model's mask: shorter ones hide the keys past their end, and integers are addends like floats.
Value readMask(OpImport& c, Value q, int64_t keys) {
  Builder& b = c.b;
  Value mask = c.in(3);
  if (mask.rank() > 4) fail(Code::BadNode, fmt::format("expected a mask of up to 4 axes, got {}", mask.type().text()));
  if (mask.kind() != ElemKind::Bool) mask = b.casted(mask, q.kind());
  const int last = mask.rank() - 1;
  if (last < 0 || mask.dim(last) >= keys || c.version < 24) return mask;
  const Value hides = b.scalarLike(mask, mask.kind() == ElemKind::Bool ? 0 : -std::numeric_limits<double>::infinity());
  std::vector<int64_t> after(static_cast<size_t>(mask.rank()), 0);
  after.back() = keys - mask.dim(last);
  return b.pad(mask, hides, {.before = std::vector<int64_t>(after.size(), 0), .after = after});
}

// Which keys hold tokens, and with a window, which of them a query sees when the queries are the last tokens of each
// row of the batch: bool[batch, 1, queries or 1, keys].
Value tokenMask(OpImport& c, Value q, int64_t keys, int64_t left, int64_t right) {
  Builder& b = c.b;
  const int64_t batch = q.dim(0), queries = q.dim(2);
  if (c.in(6).shape() != Shape{batch})
    fail(Code::BadNode,
         fmt::format("expected a number of tokens for each of {} rows, got {}", batch, c.in(6).type().text()));
  const Value tokens = b.reshaped(b.casted(c.in(6), ElemKind::Int64), {batch, 1, 1, 1});
  const Value key = iota(b, keys);
  Value visible = b.less(key, tokens);
  const auto number = [&](int64_t value) {
    return b.constant(Tensor::of(Type(ElemKind::Int64, Shape{}), std::vector{value}));
  };
  const Value position = b.add(b.sub(tokens, number(queries)), iota(b, queries, 0, 2));
  if (left >= 0) visible = b.logicalAnd(visible, b.lessOrEqual(b.sub(position, number(left)), key));
  if (right >= 0) visible = b.logicalAnd(visible, b.lessOrEqual(key, b.add(position, number(right))));
  return visible;
}

Value bothMasks(Builder& b, Value mask, Value visible) {
  if (!mask) return visible;
  if (mask.kind() == ElemKind::Bool) return b.logicalAnd(mask, visible);
  return b.where(visible, mask, b.scalarLike(mask, -std::numeric_limits<double>::infinity()));
}

int64_t windowSize(const OpImport& c, std::string_view name) {
  const int64_t size = c.version >= 25 ? c.integer(name, -1) : -1;
  if (size < -1) fail(Code::BadNode, fmt::format("expected '{}' to be -1 or not negative, got {}", name, size));
  return size;
}

void attention(OpImport& c) {
  Builder& b = c.b;
  Value q = c.in(0), k = c.in(1), v = c.in(2);
  const bool flat = q.rank() == 3;
  if ((q.rank() != 3 && q.rank() != 4) || k.rank() != q.rank() || v.rank() != q.rank())
    fail(Code::BadNode, fmt::format("expected Q, K and V with 3 axes each or 4 axes each, got {}, {} and {}",
                                    q.type().text(), k.type().text(), v.type().text()));
  if (flat) {
    q = splitHeads(b, q, c.integer("q_num_heads"));
    k = splitHeads(b, k, c.integer("kv_num_heads"));
    v = splitHeads(b, v, c.integer("kv_num_heads"));
  }
  AttentionAttrs attrs;
  if (c.has(4) != c.has(5)) fail(Code::BadNode, "past_key and past_value must be given together");
  if (c.has(4)) {
    if (c.has(6)) fail(Code::BadNode, "nonpad_kv_seqlen cannot be given together with past_key and past_value");
    if (c.in(4).rank() != 4)
      fail(Code::BadNode, fmt::format("expected past_key with 4 axes, got {}", c.in(4).type().text()));
    attrs.offset = c.in(4).dim(2);
    k = b.concat({c.in(4), k}, {.axis = 2});
    v = b.concat({c.in(5), v}, {.axis = 2});
  }
  const int64_t keys = k.dim(2);
  attrs.left = windowSize(c, "left_window_size");
  attrs.right = c.flag("is_causal") ? 0 : windowSize(c, "right_window_size");
  Value mask = c.has(3) ? readMask(c, q, keys) : Value{};
  if (c.has(6)) {
    mask = bothMasks(b, mask, tokenMask(c, q, keys, attrs.left, attrs.right));
    attrs.left = attrs.right = -1;
  }
  attrs.scale = c.real("scale", 1 / std::sqrt(static_cast<double>(std::max<int64_t>(q.dim(3), 1))));
  attrs.softcap = c.real("softcap", 0);
  attrs.precision = c.elem("softmax_precision", q.kind());
  static constexpr std::string_view kModes[] = {"scores", "capped", "masked", "softmax"};
  const int64_t mode = c.integer("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    fail(Code::BadNode, fmt::format("expected 'qk_matmul_output_mode' from 0 to 3, got {}", mode));
  attrs.weights = kModes[mode];

  aglow::Node* node = b.attention(q, k, b.casted(v, q.kind()), mask, attrs);
  c.out(0, flat ? joinHeads(b, node->result(0)) : node->result(0));
  c.out(1, k);
  c.out(2, v);
  c.out(3, node->result(1));
}

// Values of the caches for each position, [batch, length, 1, width].
Value rotationFactors(OpImport& c, int operand, Value x, int64_t width) {
  Builder& b = c.b;
  const int64_t batch = x.dim(0), length = x.dim(1);
  Value cache = c.in(operand);
  if (cache.rank() != (c.has(3) ? 2 : 3) || cache.dim(cache.rank() - 1) != width)
    fail(Code::BadNode, fmt::format("expected {} axes, the last of {} elements, in input {}, got {}", c.has(3) ? 2 : 3,
                                    width, operand, cache.type().text()));
  if (c.has(3)) cache = b.gather(cache, c.in(3));
  return b.reshape(cache, {.shape = {batch, length, 1, width}});
}

void rotaryEmbedding(OpImport& c) {
  Builder& b = c.b;
  const Value input = c.in(0);
  if (input.rank() != 3 && input.rank() != 4)
    fail(Code::BadNode, fmt::format("expected an input with 3 or 4 axes, got {}", input.type().text()));
  // [batch, length, heads, width]
  Value x = input;
  if (input.rank() == 4) {
    x = b.transposed(x, {0, 2, 1, 3});
  } else {
    const int64_t heads = c.integer("num_heads", 0);
    if (heads < 1 || x.dim(2) % heads != 0)
      fail(Code::BadNode,
           fmt::format("expected 'num_heads' that divides the width of {}, got {}", x.type().text(), heads));
    x = b.reshaped(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads});
  }
  int64_t rotated = c.integer("rotary_embedding_dim", 0);
  if (rotated == 0) rotated = x.dim(3);
  if (rotated < 0 || rotated > x.dim(3) || rotated % 2 != 0)
    fail(Code::BadNode, fmt::format("expected an even 'rotary_embedding_dim' up to {}, got {}", x.dim(3), rotated));
  const int64_t half = rotated / 2;
  const Value cosine = rotationFactors(c, 1, x, half), sine = rotationFactors(c, 2, x, half);

  Value y = rotatedPairs(b, sliced(b, x, 3, 0, rotated), cosine, sine, c.flag("interleaved"));
  if (rotated < x.dim(3)) y = b.concat({y, sliced(b, x, 3, rotated, x.dim(3) - rotated)}, {.axis = 3});
  c.out(input.rank() == 4 ? b.transposed(y, {0, 2, 1, 3}) : b.reshaped(y, input.shape().dims()));
}

}  // namespace

std::span<const OpRow> attentionRows() {
  static constexpr OpRow rows[] = {{"Attention", attention, 23}, {"RotaryEmbedding", rotaryEmbedding, 23}};
  return rows;
}

}  // namespace aglow::onnx
