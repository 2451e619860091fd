// Reductions along axes, and selection of the largest.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "import/caffe2/args.h"
#include "import/caffe2/op_tables.h"

namespace aglow::caffe2 {

namespace {

constexpr char kSum[] = "sum", kMean[] = "mean", kMax[] = "max", kMin[] = "min";

struct Axes {
  std::vector<int64_t> axes;
  bool keep;
};

Axes axesOf(const OpImport& c) {
  std::vector<int64_t> axes = c.axes(intsArg(c, "axes"), c.in(0).rank());
  if (axes.empty()) axes = range(0, c.in(0).rank());
  return {std::move(axes), flag(c, "keepdims", true)};
}

template <const char* Kind>
void reduce(OpImport& c) {
  const Axes a = axesOf(c);
  c.out(c.b.reduced(c.in(0), Kind, a.axes, a.keep));
}

void reduceL1(OpImport& c) {
  const Axes a = axesOf(c);
  c.out(c.b.reduced(c.b.abs(c.in(0)), "sum", a.axes, a.keep));
}

void reduceL2(OpImport& c) {
  const Axes a = axesOf(c);
  c.out(c.b.sqrt(c.b.reduced(c.b.mul(c.in(0), c.in(0)), "sum", a.axes, a.keep)));
}

// Elements past each row's (or, at the front, column's) length do not count.
template <const char* Kind>
Value reducedWithin(OpImport& c, Value x, bool front) {
  Builder& b = c.b;
  const std::string kind = Kind;
  const Value lengths = indices(c, 1);
  const int64_t axis = front ? 0 : x.rank() - 1, extent = x.dim(static_cast<int>(axis));
  std::vector<int64_t> dims = x.shape().dims();
  dims[static_cast<size_t>(axis)] = 1;
  if (lengths.type().elements() != Shape(dims).elements())
    fail(Code::BadNode,
         fmt::format("expected a length for each reduction of {}, got {}", x.type().text(), lengths.type().text()));
  const Value length = b.reshaped(lengths, dims);
  const Value inside = b.less(iota(b, extent, axis, x.rank()), length);
  const double outside =
      kind == "max" ? isFloat(x.kind()) ? -std::numeric_limits<float>::infinity() : std::numeric_limits<int32_t>::min()
                    : 0;
  const Value total = b.reduced(b.where(inside, x, b.scalarLike(x, outside)), kind == "max" ? "max" : "sum", {axis});
  const Value result = kind == "mean" ? b.div(total, b.casted(length, x.kind())) : total;
  dims.erase(dims.begin() + axis);
  return b.reshaped(result, dims);
}

template <const char* Kind, bool Front>
void reduceEnd(OpImport& c) {
  const Value x = c.in(0);
  const int64_t count = intArg(c, "num_reduce_dim", 1);
  if (count < 0 || count > x.rank() || (c.has(1) && count != 1))
    fail(Code::BadNode, fmt::format("expected 'num_reduce_dim' from 0 to {}{}, got {}", x.rank(),
                                    c.has(1) ? ", or 1 with lengths" : "", count));
  if (c.has(1)) return c.out(reducedWithin<Kind>(c, x, Front));
  c.out(c.b.reduced(x, Kind, Front ? range(0, count) : range(x.rank() - count, x.rank()), false));
}

// Everything into one number.
void sumElements(OpImport& c) {
  c.out(c.b.reduced(c.in(0), flag(c, "average") ? "mean" : "sum", range(0, c.in(0).rank()), false));
}
void sumSqrElements(OpImport& c) {
  const Value square = c.b.mul(c.in(0), c.in(0));
  c.out(c.b.reduced(square, flag(c, "average") ? "mean" : "sum", range(0, square.rank()), false));
}
void averagedLoss(OpImport& c) { c.out(c.b.reduced(c.in(0), "mean", range(0, c.in(0).rank()), false)); }

// The sum of |x| or of squares; no root is taken.
void lpNorm(OpImport& c) {
  const Value x = c.in(0);
  const int64_t p = intArg(c, "p", 2);
  if (p != 1 && p != 2) fail(Code::BadNode, fmt::format("expected 'p' 1 or 2, got {}", p));
  const Value powers = c.b.reshaped(p == 1 ? c.b.abs(x) : c.b.mul(x, x), {x.type().elements()});
  c.out(c.b.reduced(powers, flag(c, "average") ? "mean" : "sum", {0}));
}

// Of batches of matrices.
template <int Axis>
void maxOfMatrix(OpImport& c) {
  if (c.in(0).rank() != 3)
    fail(Code::BadNode, fmt::format("expected a batch of matrices, got {}", c.in(0).type().text()));
  c.out(c.b.reduced(c.in(0), "max", {Axis}, false));
}

void argReduce(OpImport& c, const std::string& kind) {
  const Value x = c.in(0);
  c.out(c.b.argReduce(
      x, {.kind = kind, .axis = c.axis(intArg(c, "axis", -1), x.rank()), .keepdims = flag(c, "keepdims", true)}));
}
void argMax(OpImport& c) { argReduce(c, "max"); }
void argMin(OpImport& c) { argReduce(c, "min"); }

void rowWiseArgMax(OpImport& c) {
  if (c.in(0).rank() != 2) fail(Code::BadNode, fmt::format("expected a matrix, got {}", c.in(0).type().text()));
  c.out(c.b.argReduce(c.in(0), {.axis = 1}));
}

// Values, places along the axis, and places in the whole tensor.
void topK(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  const int64_t axis = c.axis(intArg(c, "axis", -1), x.rank());
  aglow::Node* node = b.topK(x, {.k = c.has(1) ? c.constantInt(1) : intArg(c, "k"), .axis = axis});
  c.out(0, node->result(0));
  if (c.wants(1)) c.out(1, node->result(1));
  if (!c.wants(2)) return;
  const std::vector<int64_t> strides = x.shape().strides();
  Value flat;
  for (int64_t a = 0; a < x.rank(); ++a) {
    const Value place = a == axis ? node->result(1) : iota(b, x.dim(static_cast<int>(a)), a, x.rank());
    const Value offset = b.mul(place, b.scalar(ElemKind::Int64, static_cast<double>(strides[static_cast<size_t>(a)])));
    flat = flat ? b.add(flat, offset) : offset;
  }
  c.out(2, flat);
}

// The share of rows whose label is among the largest k.
void accuracy(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0), labels = indices(c, 1);
  if (x.rank() != 2 || labels.type().elements() != x.dim(0))
    fail(Code::BadNode,
         fmt::format("expected a matrix and a label a row, got {} and {}", x.type().text(), labels.type().text()));
  aglow::Node* best = b.topK(x, {.k = intArg(c, "top_k", 1), .axis = 1});
  const Value hit = b.casted(b.equal(best->result(1), b.reshaped(labels, {x.dim(0), 1})), ElemKind::Float32);
  c.out(b.reduced(b.reduced(hit, "max", {1}, false), "mean", {0}, false));
}

}  // namespace

std::span<const OpRow> reduceRows() {
  static constexpr OpRow rows[] = {
      row("ReduceSum", reduce<kSum>),
      row("ReduceMean", reduce<kMean>),
      row("ReduceMax", reduce<kMax>),
      row("ReduceMin", reduce<kMin>),
      row("ReduceL1", reduceL1),
      row("ReduceL2", reduceL2),
      row("ReduceFrontSum", reduceEnd<kSum, true>),
      row("ReduceFrontMean", reduceEnd<kMean, true>),
      row("ReduceFrontMax", reduceEnd<kMax, true>),
      row("ReduceBackSum", reduceEnd<kSum, false>),
      row("ReduceBackMean", reduceEnd<kMean, false>),
      row("ReduceBackMax", reduceEnd<kMax, false>),
      row("SumElements", sumElements),
      row("SumElementsInt", sumElements),
      row("SumSqrElements", sumSqrElements),
      row("AveragedLoss", averagedLoss),
      row("LpNorm", lpNorm),
      row("RowwiseMax", maxOfMatrix<2>),
      row("ColwiseMax", maxOfMatrix<1>),
      row("ArgMax", argMax),
      row("ArgMin", argMin),
      row("RowWiseArgMax", rowWiseArgMax),
      row("TopK", topK),
      row("Accuracy", accuracy),
  };
  return rows;
}

}  // namespace aglow::caffe2
