// Gradients of reading and writing at computed places: one becomes the other. What comes from the same place adds up,
// in the order of the indices.
#include "grad/rules.h"
#include "grad/shapes.h"
#include "graph/op_views.h"

namespace aglow::grad {

namespace {

// Rows of updates that the last write to their place left: what a plain scatter shows.
Value lastWrites(Builder& b, Value indices, int64_t rows) {
  const int64_t count = indices.dim(0);
  const Value numbers = b.ints(axesBetween(0, count));
  const Value none = b.splat({.elem = ElemKind::Int64, .shape = {rows}});
  return b.equal(b.gather(b.scatter(none, indices, numbers), indices), numbers);
}

// One value a row, to broadcast to rows of any rank.
Value perRow(Builder& b, Value v, int rank) {
  std::vector<int64_t> dims(static_cast<size_t>(rank), 1);
  dims.front() = v.dim(0);
  return b.reshaped(v, dims);
}

// For every update, the product of all else that its place is multiplied by. A place with a zero among its updates has
// the product of the others there, and zero everywhere else.
Value otherFactors(Builder& b, Value data, Value indices, Value updates) {
  const Value zero = b.scalarLike(updates, 0), one = b.scalarLike(updates, 1);
  const Value isZero = b.equal(updates, zero);
  const Value factors = b.where(isZero, one, updates);
  const Value products = b.gather(b.scatter(data, indices, factors, {.reduction = "mul"}), indices);
  const Value count = b.scatter(zeros(b, data.type()), indices, b.casted(isZero, data.kind()), {.reduction = "add"});
  const Value zerosThere = b.gather(count, indices);
  return b.where(isZero, b.where(b.equal(zerosThere, one), products, zero),
                 b.where(b.equal(zerosThere, zero), b.div(products, factors), zero));
}

}  // namespace

std::vector<Value> gather(const Backward& s) {
  const GatherNode v(s.node);
  Builder& b = s.b;
  const Value data = v.data(), g = s.dy[0];
  const int axis = static_cast<int>(v.axis());
  const int64_t rows = data.dim(axis), count = v.indices().type().elements();
  if (g.type().elements() == 0 || data.type().elements() == 0) return {zeros(b, data.type())};
  const int64_t width = data.type().elements() / rows;
  const Value updates =
      b.reshaped(b.transposed(g, frontFirst(axesBetween(axis, axis + v.indices().rank()), g.rank())), {count, width});
  const Value none = b.splat({.elem = data.kind(), .shape = {rows, width}});
  const Value sums = b.scatter(none, b.reshaped(v.indices(), {count}), updates, {.reduction = "add"});
  const std::vector<int64_t> perm = frontFirst({axis}, data.rank());
  std::vector<int64_t> dims;
  for (const int64_t a : perm) dims.push_back(data.dim(static_cast<int>(a)));
  return {b.transposed(b.reshaped(sums, dims), inverse(perm))};
}

std::vector<Value> scatter(const Backward& s) {
  const ScatterNode v(s.node);
  Builder& b = s.b;
  const Value data = v.data(), indices = v.indices(), updates = v.updates(), g = s.dy[0];
  if (updates.type().elements() == 0 || data.type().elements() == 0)
    return {g, Value{}, s.wants(2) ? zeros(b, updates.type()) : Value{}};
  Value ddata, dupdates;
  if (v.reduction() == "add") {
    ddata = g;
    if (s.wants(2)) dupdates = b.gather(g, indices);
  } else if (v.reduction() == "none") {
    if (s.wants(0)) ddata = b.scatter(g, indices, zeros(b, updates.type()));
    if (s.wants(2))
      dupdates = b.where(perRow(b, lastWrites(b, indices, data.dim(0)), updates.rank()), b.gather(g, indices),
                         b.scalarLike(g, 0));
  } else if (v.reduction() == "mul") {
    const Value ones = b.splat({.value = 1, .elem = data.kind(), .shape = data.shape().dims()});
    if (s.wants(0)) ddata = b.mul(g, b.scatter(ones, indices, updates, {.reduction = "mul"}));
    if (s.wants(2)) dupdates = b.mul(b.gather(g, indices), otherFactors(b, data, indices, updates));
  } else {
    // Of equals, in the data and in the updates, each gets its share.
    const Value y = s.node.result();
    const Value kept = b.casted(b.equal(data, y), data.kind());
    const Value written = b.casted(b.equal(updates, b.gather(y, indices)), data.kind());
    const Value share = b.div(g, b.scatter(kept, indices, written, {.reduction = "add"}));
    if (s.wants(0)) ddata = b.mul(kept, share);
    if (s.wants(2)) dupdates = b.mul(written, b.gather(share, indices));
  }
  return {ddata, Value{}, dupdates};
}

}  // namespace aglow::grad
