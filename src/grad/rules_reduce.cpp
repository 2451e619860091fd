// Gradients of reductions and of what works along an axis.
#include <algorithm>

#include "grad/rules.h"
#include "grad/shapes.h"
#include "graph/op_views.h"

namespace aglow::grad {

namespace {

// A matrix of the elements along some axes, one row for all that go together, and the way back.
struct Rows {
  Builder& b;
  std::vector<int64_t> perm, moved;
  int64_t outer = 1, inner = 1;

  Rows(Builder& builder, const Shape& x, const std::vector<int64_t>& axes) : b(builder), perm(endLast(axes, x.rank())) {
    for (size_t i = 0; i < perm.size(); ++i) {
      moved.push_back(x[static_cast<int>(perm[i])]);
      (i + axes.size() < perm.size() ? outer : inner) *= moved.back();
    }
  }
  Value of(Value x) const { return b.reshaped(b.transposed(x, perm), {outer, inner}); }
  Value back(Value rows) const { return b.transposed(b.reshaped(rows, moved), inverse(perm)); }
};

// Every element times the product of all others of its row, without a division.
Value timesOthers(Builder& b, const Rows& rows, Value x, Value g) {
  const Value m = rows.of(x);
  const Value before = b.scan(m, {.kind = "prod", .axis = 1, .exclusive = true});
  const Value after = b.scan(m, {.kind = "prod", .axis = 1, .exclusive = true, .reverse = true});
  return rows.back(b.mul(b.mul(before, after), b.reshaped(g, {rows.outer, 1})));
}

// The gradient of a running product: element k is part of all products from its own place on, in which the others stay.
Value scannedProduct(const Backward& s, const ScanNode& v) {
  Builder& b = s.b;
  const Rows rows(b, v.x().shape(), {v.axis()});
  const int64_t n = rows.inner;
  Value x = rows.of(v.x()), g = rows.of(s.dy[0]);
  if (v.reverse()) x = flipped(b, x, {1}), g = flipped(b, g, {1});
  const Value places = b.ints(axesBetween(0, n));
  const Value k = b.reshaped(places, {n, 1}), j = b.reshaped(places, {1, n});
  const Value others = b.where(b.equal(k, j), b.scalarLike(x, 1), b.reshaped(x, {rows.outer, 1, n}));
  const Value products = b.scan(others, {.kind = "prod", .axis = 2, .exclusive = v.exclusive()});
  const Value sees = v.exclusive() ? b.less(k, j) : b.lessOrEqual(k, j);
  const Value parts = b.where(sees, b.mul(products, b.reshaped(g, {rows.outer, 1, n})), b.scalarLike(x, 0));
  const Value sum = b.reduced(parts, "sum", {2}, false);
  return rows.back(v.reverse() ? flipped(b, sum, {1}) : sum);
}

}  // namespace

std::vector<Value> reduce(const Backward& s) {
  const ReduceNode v(s.node);
  Builder& b = s.b;
  const Value x = v.x();
  std::vector<int64_t> kept = x.shape().dims();
  int64_t count = 1;
  for (const int64_t axis : v.axes()) {
    count *= kept[static_cast<size_t>(axis)];
    kept[static_cast<size_t>(axis)] = 1;
  }
  if (x.type().elements() == 0) return {zeros(b, x.type())};
  const Value g = b.reshaped(s.dy[0], kept);
  const auto spread = [&](Value value) {
    return value.shape() == x.shape() ? value : b.expand(value, {.shape = x.shape().dims()});
  };
  if (v.kind() == "sum") return {spread(g)};
  if (v.kind() == "mean") return {spread(b.mul(g, b.scalarLike(g, 1 / static_cast<double>(count))))};
  if (v.kind() == "prod") return {timesOthers(b, Rows(b, x.shape(), v.axes()), x, g)};
  // Of equals each gets its share.
  const Value winners = b.casted(b.equal(x, b.reshaped(s.node.result(), kept)), x.kind());
  return {b.mul(winners, b.div(g, b.reduced(winners, "sum", v.axes())))};
}

std::vector<Value> scan(const Backward& s) {
  const ScanNode v(s.node);
  if (v.x().type().elements() == 0) return {zeros(s.b, v.x().type())};
  if (v.kind() == "prod") return {scannedProduct(s, v)};
  return {s.b.scan(s.dy[0], {.kind = "sum", .axis = v.axis(), .exclusive = v.exclusive(), .reverse = !v.reverse()})};
}

std::vector<Value> topK(const Backward& s) {
  const TopKNode v(s.node);
  if (!s.dy[0]) return {};
  return {
      s.b.scatterElements(zeros(s.b, v.x().type()), s.node.result(1), s.dy[0], {.axis = v.axis(), .reduction = "add"})};
}

}  // namespace aglow::grad
