// Grouped attention of com.microsoft over a cache of keys and values, and how tokens get their positions: rotary
// embeddings and relative position biases.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "import/onnx/op_contrib.h"
#include "import/onnx/op_heads.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

Value number(Builder& b, int64_t value) {
  return b.constant(Tensor::of(Type(ElemKind::Int64, Shape{}), std::vector{value}));
}

// Where the new tokens of each row of the batch begin. One place for all rows when it is known while compiling.
struct Begin {
  int64_t place = 0;
  Value places;  // i64[batch], or empty

  // The positions of new tokens, [batch or 1, queries].
  Value positions(Builder& b, int64_t queries) const {
    const Value steps = iota(b, queries, 1, 2);
    return places ? b.add(b.reshaped(places, {places.dim(0), 1}), steps) : b.add(steps, number(b, place));
  }
};

struct Lengths {
  int64_t batch, queries, total;
};

// In the first call all tokens are new. Later the row's own length says how many came before; for a single row that is
// the longest of all, which the node names as a number.
Begin beginOf(OpImport& c, const Lengths& n) {
  const Value last = c.in(5);
  if (last.type().elements() != n.batch)
    fail(Code::BadNode, fmt::format("expected a length for each of {} rows, got {}", n.batch, last.type().text()));
  if (n.total < n.queries)
    fail(Code::BadNode, fmt::format("expected a total length of at least {} new tokens, got {}", n.queries, n.total));
  if (n.total == n.queries) return {};
  if (n.batch == 1) return {.place = n.total - n.queries, .places = {}};
  const Value rows = c.b.casted(c.b.reshaped(last, {n.batch}), ElemKind::Int64);
  return {.place = 0, .places = c.b.add(rows, number(c.b, 1 - n.queries))};
}

Value rotated(OpImport& c, Value x, Value positions) {
  Builder& b = c.b;
  const Value cosines = c.in(7), sines = c.in(8);
  const int64_t width = x.dim(3);
  if (cosines.rank() != 2 || cosines.shape() != sines.shape() || 2 * cosines.dim(1) > width)
    fail(Code::BadNode, fmt::format("expected tables of cosines and sines for heads of {} elements, got {} and {}",
                                    width, cosines.type().text(), sines.type().text()));
  const int64_t half = cosines.dim(1);
  const auto factors = [&](Value table) {
    return b.reshaped(b.gather(table, positions), {positions.dim(0), 1, positions.dim(1), half});
  };
  const Value turned =
      rotatedPairs(b, sliced(b, x, 3, 0, 2 * half), factors(cosines), factors(sines), c.flag("rotary_interleaved"));
  return 2 * half == width ? turned : b.concat({turned, sliced(b, x, 3, 2 * half, width - 2 * half)}, {.axis = 3});
}

// The cache with the new rows in their places; as long as it was, or as long as all tokens are.
Value present(OpImport& c, int past, Value fresh, const Begin& begin, const Lengths& n) {
  Builder& b = c.b;
  const Value old = c.optional(past);
  if (old && (old.rank() != 4 || old.dim(0) != n.batch || old.dim(1) != fresh.dim(1) || old.dim(3) != fresh.dim(3)))
    fail(Code::BadNode,
         fmt::format("expected a past like {} of any length, got {}", fresh.type().text(), old.type().text()));
  const int64_t had = old ? old.dim(2) : 0, length = std::max(had, n.total);
  if (begin.places) {
    const Value zero = b.scalarLike(fresh, 0);
    const Value cache = old ? paddedOrCropped(b, old, {0, 0, 0, 0}, {0, 0, length - had, 0}, zero)
                            : b.splat({.elem = fresh.kind(), .shape = {n.batch, fresh.dim(1), length, fresh.dim(3)}});
    const Value places = b.reshaped(begin.positions(b, n.queries), {n.batch, 1, n.queries, 1});
    return b.scatterElements(cache, b.expand(places, {.shape = fresh.shape().dims()}), fresh, {.axis = 2});
  }
  if (had < begin.place)
    fail(Code::BadNode, fmt::format("expected a past of at least {} tokens, got {}", begin.place, had));
  std::vector<Value> parts;
  const int64_t end = begin.place + n.queries;
  if (begin.place > 0) parts.push_back(sliced(b, old, 2, 0, begin.place));
  parts.push_back(fresh);
  if (length > end) parts.push_back(sliced(b, old, 2, end, length - end));
  return parts.size() == 1 ? fresh : b.concat(parts, {.axis = 2});
}

// Whether a query sees a key: [batch or 1, 1, queries, keys].
Value visibility(OpImport& c, const Begin& begin, const Lengths& n, int64_t left, bool causal) {
  Builder& b = c.b;
  const Value key = iota(b, n.total);
  const Value at = begin.positions(b, n.queries);
  const Value query = b.reshaped(at, {at.dim(0), 1, at.dim(1), 1});
  const Value newest =
      causal ? query : b.add(sliced(b, query, 2, 0, 1), number(b, n.queries - 1));  // the last token of the row
  Value seen = b.lessOrEqual(key, newest);
  if (left >= 0) seen = b.logicalAnd(seen, b.lessOrEqual(b.sub(query, number(b, left)), key));
  return b.expand(seen, {.shape = {at.dim(0), 1, n.queries, n.total}});
}

void refuseQuantizedCaches(OpImport& c) {
  if (c.word("k_quant_type", "NONE") != "NONE" || c.word("v_quant_type", "NONE") != "NONE" || c.has(12) || c.has(13))
    fail(Code::UnsupportedFeature, "quantized caches of keys and values are not supported");
  if (c.flag("sliding_window_cache"))
    fail(Code::UnsupportedFeature, "caches that hold a window of the tokens are not supported",
         "export the model with caches that hold all tokens");
}

void groupQueryAttention(OpImport& c) {
  Builder& b = c.b;
  refuseQuantizedCaches(c);
  const int64_t heads = c.integer("num_heads"), groups = c.integer("kv_num_heads");
  Value query = c.in(0), key = c.optional(1), value = c.optional(2);
  if (query.rank() != 3 || heads < 1 || groups < 1 || heads % groups != 0)
    fail(Code::BadNode, fmt::format("expected [batch, length, width] and heads that divide into groups, got {}, {} "
                                    "heads and {} groups",
                                    query.type().text(), heads, groups));
  if (!key) {
    const Value packed = query;
    const int64_t width = packed.dim(2) / (heads + 2 * groups);
    if (width * (heads + 2 * groups) != packed.dim(2))
      fail(Code::BadNode, fmt::format("expected q, k and v in one tensor, got {}", packed.type().text()));
    query = sliced(b, packed, 2, 0, heads * width);
    key = sliced(b, packed, 2, heads * width, groups * width);
    value = sliced(b, packed, 2, (heads + groups) * width, groups * width);
  }
  Value q = splitHeads(b, query, heads), k = splitHeads(b, key, groups), v = splitHeads(b, value, groups);
  if (k.dim(2) != q.dim(2) || v.dim(2) != q.dim(2) || k.dim(3) != q.dim(3))
    fail(Code::BadNode, fmt::format("expected as many keys and values as queries, got {}, {} and {}", q.type().text(),
                                    k.type().text(), v.type().text()));
  const Lengths n{.batch = q.dim(0), .queries = q.dim(2), .total = c.constantInt(6)};
  const Begin begin = beginOf(c, n);
  if (c.has(14) != c.has(15)) fail(Code::BadNode, "q_norm_weight and k_norm_weight must be given together");
  if (c.has(14)) {
    const double epsilon = c.real("qk_norm_epsilon", 1e-6);
    q = b.rmsNorm(q, c.in(14), {.axis = 3, .epsilon = epsilon});
    k = b.rmsNorm(k, c.in(15), {.axis = 3, .epsilon = epsilon});
  }
  if (c.flag("do_rotary")) {
    const Value positions = c.has(9) ? b.reshaped(c.in(9), {n.batch, n.queries}) : begin.positions(b, n.queries);
    q = rotated(c, q, positions);
    k = rotated(c, k, positions);
  }
  const Value keys = present(c, 3, k, begin, n), values = present(c, 4, v, begin, n);
  const Value seenKeys = sliced(b, keys, 2, 0, n.total), seenValues = sliced(b, values, 2, 0, n.total);

  const bool causal = c.flag("causal", true);
  const int64_t window = c.integer("local_window_size", -1);
  AttentionAttrs attrs;
  attrs.scale = c.real("scale", 0);
  if (attrs.scale == 0) attrs.scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(q.dim(3), 1)));
  attrs.softcap = c.real("softcap", 0);
  attrs.precision = q.kind();
  const int64_t shown = c.integer("qk_output", 0);
  if (shown < 0 || shown > 2) fail(Code::BadNode, fmt::format("expected 'qk_output' from 0 to 2, got {}", shown));
  attrs.weights = shown == 2 ? "softmax" : "masked";
  const int64_t left = window > 0 ? window - 1 : -1;

  const int64_t smoothing = c.integer("smooth_softmax", -1);
  if (smoothing < -1 || smoothing > 1)
    fail(Code::BadNode, fmt::format("expected 'smooth_softmax' from -1 to 1, got {}", smoothing));
  const bool smooth = c.has(11) || smoothing == 1;
  Value mask = c.optional(10);
  if (!begin.places && !smooth) {
    attrs.left = left;
    attrs.right = causal ? 0 : -1;
    attrs.offset = begin.place;
  } else {
    const Value seen = visibility(c, begin, n, left, causal);
    mask = mask ? b.where(seen, mask, b.scalarLike(mask, kHidden)) : seen;
  }
  aglow::Node* node = nullptr;
  if (smooth) {
    // One more key, which the model does not have, takes its share of the weights: its score is the sink, its value
    // zero.
    if (mask.kind() == ElemKind::Bool) mask = b.where(mask, b.scalarLike(q, 0), b.scalarLike(q, kHidden));
    const int64_t rows = mask.dim(0);
    mask = b.expand(mask, {.shape = {rows, heads, n.queries, n.total}});
    Value sink = c.has(11) ? c.in(11) : b.splat({.elem = q.kind(), .shape = {heads}});
    sink = b.expand(b.reshaped(b.casted(sink, q.kind()), {1, heads, 1, 1}), {.shape = {rows, heads, n.queries, 1}});
    const auto extended = [&](Value x) {
      return b.pad(x, b.scalarLike(x, 0), {.before = {0, 0, 0, 0}, .after = {0, 0, 1, 0}});
    };
    node = b.attention(q, extended(seenKeys), extended(seenValues), b.concat({mask, sink}, {.axis = 3}), attrs);
  } else {
    node = b.attention(q, seenKeys, seenValues, mask, attrs);
  }
  c.out(0, joinHeads(b, node->result(0)));
  c.out(1, keys);
  c.out(2, values);
  if (c.wants(3)) c.out(3, sliced(b, node->result(1), 3, 0, n.total));
}

// ---------------------------------------------------------------- positions

// The standard operator has the tables before the positions, and always one position a token.
void rotaryEmbedding(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0), cosines = c.in(2);
  if (x.rank() != 3 && x.rank() != 4)
    fail(Code::BadNode, fmt::format("expected an input with 3 or 4 axes, got {}", x.type().text()));
  const int64_t batch = x.dim(0), length = x.dim(x.rank() == 3 ? 1 : 2);
  Value positions = c.in(1);
  if (positions.type().elements() == 1 && batch * length != 1)
    positions = b.add(iota(b, length, 1, 2, positions.kind()), b.reshaped(positions, {}));
  if (positions.rank() != 2 || positions.dim(1) != length || (positions.dim(0) != batch && positions.dim(0) != 1))
    positions = b.reshaped(positions, {batch, length});
  positions = b.expand(positions, {.shape = {batch, length}});
  Node node = standardNode(c, "RotaryEmbedding");
  if (x.rank() == 3 && c.integer("num_heads", 0) == 0 && cosines.rank() == 2 && cosines.dim(1) > 0) {
    std::erase_if(node.attributes, [](const Attribute& a) { return a.name == "num_heads"; });
    node.attributes.push_back(intAttribute("num_heads", x.dim(2) / (2 * cosines.dim(1))));
  }
  constexpr int64_t kOpset = 23;
  c.out(0, c.standard(node, kOpset, {Imported::of(x), c.operand(2), c.operand(3), Imported::of(positions)}).front());
}

void gemmaRotaryEmbedding(OpImport& c) {
  Builder& b = c.b;
  const Value angles = c.in(0);
  if (angles.rank() != 3)
    fail(Code::BadNode, fmt::format("expected [batch, length, width], got {}", angles.type().text()));
  const auto factors = [&](Value x) { return unsqueezed(b, b.casted(x, c.in(1).kind()), 1); };
  const Value cosine = factors(b.cos(angles)), sine = factors(b.sin(angles));
  for (int i = 0; i < 2; ++i) c.out(i, b.add(b.mul(c.in(1 + 2 * i), cosine), b.mul(c.in(2 + 2 * i), sine)));
}

// The bucket of a distance between a query and a key, as T5 has them: small distances alone, larger ones together.
int64_t bucketOf(int64_t distance, int64_t buckets, int64_t longest, bool bothWays) {
  int64_t first = 0;
  if (bothWays) {
    buckets /= 2;
    if (distance > 0) first = buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(-distance, 0);
  }
  const int64_t exact = buckets / 2;
  if (distance < exact) return first + distance;
  const float share = std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                      std::log(static_cast<float>(longest) / static_cast<float>(exact));
  const auto large = exact + static_cast<int64_t>(share * static_cast<float>(buckets - exact));
  return first + std::min(large, buckets - 1);
}

void relativePositionBias(OpImport& c) {
  Builder& b = c.b;
  const Value table = c.in(0);
  const int64_t queries = c.constantInt(1), keys = c.constantInt(2), longest = c.integer("max_distance");
  constexpr int64_t kMost = 1 << 14;
  if (table.rank() != 2 || table.dim(0) < 4 || queries < 0 || keys < 0 || queries > kMost || keys > kMost ||
      longest <= table.dim(0) / 2)
    fail(Code::BadNode, fmt::format("expected [buckets, heads], lengths up to {} and a distance over half of the "
                                    "buckets, got {}, {}, {} and {}",
                                    kMost, table.type().text(), queries, keys, longest));
  const bool bothWays = c.flag("is_bidirectional");
  std::vector<int64_t> buckets;
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 0; j < keys; ++j) buckets.push_back(bucketOf(j - i, table.dim(0), longest, bothWays));
  const Value places = b.constant(Tensor::of(Type(ElemKind::Int64, Shape{queries, keys}), buckets));
  c.out(unsqueezed(b, b.transposed(b.gather(table, places), {2, 0, 1}), 0));
}

void gatedRelativePositionBias(OpImport& c) {
  Builder& b = c.b;
  if (c.has(6)) fail(Code::UnsupportedFeature, "tokens without padding are not supported here");
  const Value q = splitHeads(b, b.add(c.in(0), c.in(1)), c.integer("num_heads"));
  const Value scores = b.add(b.matMul(q, c.in(3)), c.in(4));
  if (scores.dim(3) % 2 != 0)
    fail(Code::BadNode,
         fmt::format("expected an even number of columns in the weights, got {}", c.in(3).type().text()));
  const std::vector<Value> parts = splitLast(b, scores, 2);
  const auto gate = [&](Value part) { return b.sigmoid(b.reduced(part, "sum", {3})); };
  const Value inner = b.sub(b.mul(gate(parts[1]), c.in(5)), b.scalarLike(scores, 1));
  c.out(b.mul(b.add(b.mul(gate(parts[0]), inner), b.scalarLike(scores, 2)), c.in(2)));
}

}  // namespace

std::span<const OpRow> contribGroupRows() {
  static constexpr OpRow rows[] = {
      microsoft("GroupQueryAttention", groupQueryAttention),
      microsoft("RotaryEmbedding", rotaryEmbedding),
      microsoft("GemmaRotaryEmbedding", gemmaRotaryEmbedding),
      microsoft("RelativePositionBias", relativePositionBias),
      microsoft("GatedRelativePositionBias", gatedRelativePositionBias),
  };
  return rows;
}

}  // namespace aglow::onnx
