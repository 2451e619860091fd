// Newer parts of language models: LinearAttention, a recurrence unrolled over its tokens, FlexAttention, whose stages
// the model may change, and convolutions that carry a state.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

constexpr int64_t kMaxTokens = 1 << 13;

// An operand [batch, tokens, heads * width] as [tokens, batch, heads, width].
Value byToken(Builder& b, Value x, int64_t heads) {
  return b.transposed(b.reshaped(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {1, 0, 2, 3});
}

struct LinearAttention {
  int64_t batch, tokens, heads, groups, keyWidth, valueWidth;
  ElemKind wide;
  Value q, k, v;      // by token, wide
  Value decay, beta;  // by token, wide; empty where the rule has none
};

Value packed(const OpImport& c, int input, const LinearAttention& a, std::initializer_list<int64_t> widths) {
  const Value x = c.in(input);
  const bool fits = x.rank() == 3 && x.dim(0) == a.batch && x.dim(1) == a.tokens &&
                    std::find(widths.begin(), widths.end(), x.dim(2)) != widths.end();
  if (!fits)
    fail(Code::BadNode, fmt::format("expected [{}, {}, {}] as input {}, got {}", a.batch, a.tokens,
                                    listText(std::vector<int64_t>(widths)), input, x.type().text()));
  return c.b.casted(x, a.wide);
}

LinearAttention readLinearAttention(OpImport& c) {
  const std::string rule = c.word("update_rule", "gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    fail(Code::BadNode, fmt::format("expected 'update_rule' linear, gated, delta or gated_delta, got '{}'", rule));
  const bool gated = rule.starts_with("gated"), corrects = rule.ends_with("delta");
  if (c.has(4) != gated || c.has(5) != corrects)
    fail(Code::BadNode,
         fmt::format("update rule '{}' takes {} decay and {} beta", rule, gated ? "a" : "no", corrects ? "a" : "no"));
  LinearAttention a{};
  a.heads = c.integer("q_num_heads");
  a.groups = c.integer("kv_num_heads");
  const Value q = c.in(0), v = c.in(2);
  if (a.heads < 1 || a.groups < 1 || a.heads % a.groups != 0 || q.rank() != 3 || q.dim(2) % a.heads != 0 ||
      v.rank() != 3 || v.dim(2) % a.groups != 0)
    fail(Code::BadNode,
         fmt::format("expected widths that divide into {} heads of queries and {} of keys, got {} and {}", a.heads,
                     a.groups, q.type().text(), v.type().text()));
  a.batch = q.dim(0);
  a.tokens = q.dim(1);
  a.keyWidth = q.dim(2) / a.heads;
  a.valueWidth = v.dim(2) / a.groups;
  if (a.tokens > kMaxTokens)
    fail(Code::LimitReached, fmt::format("{} tokens are more than can be unrolled (limit {})", a.tokens, kMaxTokens));
  a.wide = wideKind(q.kind());
  a.q = byToken(c.b, packed(c, 0, a, {q.dim(2)}), a.heads);
  a.k = byToken(c.b, packed(c, 1, a, {a.groups * a.keyWidth}), a.groups);
  a.v = byToken(c.b, packed(c, 2, a, {v.dim(2)}), a.groups);
  if (gated) a.decay = byToken(c.b, packed(c, 4, a, {a.groups, a.groups * a.keyWidth}), a.groups);
  if (corrects) {
    const Value beta = packed(c, 5, a, {a.groups, 1});
    a.beta = byToken(c.b, beta, beta.dim(2));
  }
  return a;
}

void linearAttention(OpImport& c) {
  Builder& b = c.b;
  const LinearAttention a = readLinearAttention(c);
  const std::vector<int64_t> stateDims{a.batch, a.groups, a.keyWidth, a.valueWidth};
  if (c.has(3) && c.in(3).shape().dims() != stateDims)
    fail(Code::BadNode, fmt::format("expected a state {}, got {}", listText(stateDims), c.in(3).type().text()));
  const ElemKind kind = c.in(0).kind(), stateKind = c.has(3) ? c.in(3).kind() : kind;
  Value state = c.has(3) ? b.casted(c.in(3), a.wide) : b.splat({.elem = a.wide, .shape = stateDims});
  const double given = c.real("scale", 0);
  const Value scale =
      b.scalar(a.wide, given != 0 ? given : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(a.keyWidth, 1))));
  const Value queries = b.mul(a.q, scale);

  const auto at = [&](Value x, int64_t token, int64_t heads, int64_t rows, int64_t columns) {
    return b.reshaped(sliced(b, x, 0, token, 1), {a.batch, heads, rows, columns});
  };
  std::vector<Value> outputs;
  for (int64_t token = 0; token < a.tokens; ++token) {
    if (a.decay) state = b.mul(state, b.exp(at(a.decay, token, a.groups, a.decay.dim(3), 1)));
    const Value key = at(a.k, token, a.groups, 1, a.keyWidth);
    Value value = at(a.v, token, a.groups, 1, a.valueWidth);
    // Only what the state does not yield for this key already is written.
    if (a.beta) value = b.mul(at(a.beta, token, a.beta.dim(2), 1, 1), b.sub(value, b.matMul(key, state)));
    state = b.add(state, b.mul(b.transposed(key, {0, 1, 3, 2}), value));
    // The queries that share a state are rows of one product.
    outputs.push_back(b.matMul(at(queries, token, a.groups, a.heads / a.groups, a.keyWidth), state));
  }
  if (outputs.empty()) {
    c.out(0, b.splat({.elem = kind, .shape = {a.batch, 0, a.heads * a.valueWidth}}));
  } else {
    std::vector<Value> rows;
    for (const Value y : outputs) rows.push_back(b.reshaped(y, {a.batch, 1, a.heads * a.valueWidth}));
    c.out(0, b.casted(rows.size() == 1 ? rows.front() : b.concat(rows, {.axis = 1}), kind));
  }
  c.out(1, b.casted(state, stateKind));
}

// What a modifier makes of a stage.
Value modified(OpImport& c, std::string_view name, Value x) {
  if (!c.hasAttr(name)) return x;
  const std::vector<Imported> results = c.inlineGraph(c.graph(name), {Imported::of(x)});
  if (results.size() != 1 || results.front().kind != Imported::Kind::Tensor ||
      results.front().tensor.type() != x.type())
    fail(Code::BadNode, fmt::format("expected '{}' to give one {}", name, x.type().text()));
  return results.front().tensor;
}

void flexAttention(OpImport& c) {
  Builder& b = c.b;
  const Value q = c.in(0), k = c.in(1), v = c.in(2);
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4)
    fail(Code::BadNode, fmt::format("expected Q, K and V with 4 axes, got {}, {} and {}", q.type().text(),
                                    k.type().text(), v.type().text()));
  const double scale = c.real("scale", 1 / std::sqrt(static_cast<double>(std::max<int64_t>(q.dim(3), 1))));
  const ElemKind precision = c.elem("softmax_precision", wideKind(q.kind()));
  if (!c.hasAttr("score_mod") && !c.hasAttr("prob_mod")) {
    c.out(Value{b.attention(q, k, v, {}, {.scale = scale, .precision = precision}), 0});
    return;
  }
  const int64_t batch = q.dim(0), heads = q.dim(1), queries = q.dim(2), keys = k.dim(2), groups = k.dim(1);
  const int64_t rows = groups == 0 ? 0 : heads / groups * queries;
  const Value scaled = b.mul(b.casted(q, precision), b.scalar(precision, scale));
  const Value product =
      b.matMul(b.reshaped(scaled, {batch, groups, rows, q.dim(3)}), b.transposed(b.casted(k, precision), {0, 1, 3, 2}));
  const Value scores = modified(c, "score_mod", b.reshaped(product, {batch, heads, queries, keys}));
  const Value shares = modified(c, "prob_mod", b.softmax(scores, {.axis = 3}));
  const Value y = b.matMul(b.reshaped(shares, {batch, groups, rows, keys}), b.casted(v, precision));
  c.out(b.casted(b.reshaped(y, {batch, heads, queries, v.dim(3)}), q.kind()));
}

// A convolution of each channel that sees the current and past positions; the last ones are the state.
void causalConv(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0), filter = c.in(1);
  if (x.rank() != 3 || filter.rank() != 3 || filter.dim(2) < 1)
    fail(Code::BadNode, fmt::format("expected an input [n, c, l] and weights [c, 1, k], got {} and {}", x.type().text(),
                                    filter.type().text()));
  const std::string activation = c.word("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    fail(Code::BadNode, fmt::format("expected 'activation' none, silu or swish, got '{}'", activation));
  const int64_t past = filter.dim(2) - 1;
  const std::vector<int64_t> stateDims{x.dim(0), x.dim(1), past};
  if (c.has(3) && c.in(3).shape().dims() != stateDims)
    fail(Code::BadNode, fmt::format("expected a state {}, got {}", listText(stateDims), c.in(3).type().text()));
  const Value state = c.has(3) ? c.in(3) : b.splat({.elem = x.kind(), .shape = stateDims});
  const Value all = b.concat({state, x}, {.axis = 2});
  Value y = b.conv(all, filter, c.optional(2), {.group = x.dim(1)});
  if (activation != "none") y = b.swish(y);
  c.out(0, y);
  c.out(1, sliced(b, all, 2, all.dim(2) - past, past));
}

}  // namespace

std::span<const OpRow> linearAttentionRows() {
  static constexpr OpRow rows[] = {{"LinearAttention", linearAttention, 27},
                                   {"CausalConvWithState", causalConv, 27},
                                   {"FlexAttention", flexAttention, 1, INT64_MAX, "ai.onnx.preview"}};
  return rows;
}

}  // namespace aglow::onnx
