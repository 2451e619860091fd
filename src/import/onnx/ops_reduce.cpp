// Reductions along axes, selection of the largest, and what is made of them.
#include <fmt/format.h>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

// What a reduction works on; without axes all of them, unless the node says that then nothing is reduced.
struct Reduction {
  Value x;
  std::vector<int64_t> axes;
  bool keep;

  Value of(Builder& b, Value v, std::string_view kind) const { return b.reduced(v, kind, axes, keep); }
};

// The kinds grew with the opsets; bytes and truth values have a largest and a smallest one (`extreme`), and nothing
// else.
void checkKind(const OpImport& c, ElemKind kind, bool extreme) {
  int64_t since = 1;
  if (kind == ElemKind::BFloat16) since = 13;
  if (kind == ElemKind::Int8 || kind == ElemKind::UInt8) since = extreme ? 12 : INT64_MAX;
  if (kind == ElemKind::Bool) since = extreme ? 20 : INT64_MAX;
  const int bits = elemInfo(kind).bits;
  if (bits < 8 && kind != ElemKind::Bool) since = INT64_MAX;
  if (isFloat(kind) ? bits <= 8 : bits == 16) since = INT64_MAX;
  if (c.version < since)
    fail(Code::BadNode, fmt::format("{} takes no {} at opset {}", c.node.opType, elemName(kind), c.version));
}

Reduction reductionOf(OpImport& c, bool extreme = false) {
  const Value x = c.in(0);
  checkKind(c, x.kind(), extreme);
  std::vector<int64_t> axes = c.axes(c.intsFromInputOrAttr(1, "axes"), x.rank());
  if (!c.flag("noop_with_empty_axes") && axes.empty()) axes = range(0, x.rank());
  return {x, std::move(axes), c.flag("keepdims", true)};
}

constexpr char kSum[] = "sum", kMean[] = "mean", kMax[] = "max", kMin[] = "min", kProd[] = "prod";

template <const char* Kind>
void reduce(OpImport& c) {
  const Reduction r = reductionOf(c, Kind == kMax || Kind == kMin);
  c.out(r.of(c.b, r.x, Kind));
}

// A formula around a sum, computed in a kind that holds its steps. Roots and logarithms of integers are real.
template <class F>
void computed(OpImport& c, bool real, F&& formula) {
  Reduction r = reductionOf(c);
  const ElemKind kind = r.x.kind();
  r.x = c.b.casted(r.x, real && !isFloat(kind) ? ElemKind::Float64 : wideKind(kind));
  c.out(c.b.casted(formula(r), kind));
}

Value squareSum(OpImport& c, const Reduction& r) { return r.of(c.b, c.b.mul(r.x, r.x), "sum"); }

void reduceL1(OpImport& c) {
  computed(c, false, [&](const Reduction& r) { return r.of(c.b, c.b.abs(r.x), "sum"); });
}
void reduceL2(OpImport& c) {
  computed(c, true, [&](const Reduction& r) { return c.b.sqrt(squareSum(c, r)); });
}
void reduceSumSquare(OpImport& c) {
  computed(c, false, [&](const Reduction& r) { return squareSum(c, r); });
}
void reduceLogSum(OpImport& c) {
  computed(c, true, [&](const Reduction& r) { return c.b.log(r.of(c.b, r.x, "sum")); });
}
void reduceLogSumExp(OpImport& c) {
  computed(c, true, [&](const Reduction& r) {
    // The largest element leaves the sum, so that no power overflows; an infinite one would leave NaN behind.
    const Value largest = c.b.reduced(r.x, "max", r.axes);
    const Value shift = c.b.where(c.b.isInf(largest), c.b.scalarLike(largest, 0), largest);
    const Value sum = c.b.log(r.of(c.b, c.b.exp(c.b.sub(r.x, shift)), "sum"));
    return c.b.add(sum, c.b.reshaped(shift, sum.shape().dims()));
  });
}

void argReduce(OpImport& c, const std::string& kind) {
  const Value x = c.in(0);
  c.out(c.b.argReduce(x, {.kind = kind,
                          .axis = c.axis(c.integer("axis", 0), x.rank()),
                          .keepdims = c.flag("keepdims", true),
                          .last = c.flag("select_last_index")}));
}
void argMax(OpImport& c) { argReduce(c, "max"); }
void argMin(OpImport& c) { argReduce(c, "min"); }

void topK(OpImport& c) {
  const Value x = c.in(0);
  c.flag("sorted", true);  // in order in any case
  aglow::Node* node = c.b.topK(x, {.k = c.version < 10 ? c.integer("k") : c.constantInt(1),
                                   .axis = c.axis(c.integer("axis", -1), x.rank()),
                                   .largest = c.flag("largest", true)});
  c.out(0, node->result(0));
  c.out(1, node->result(1));
}

// Before opset 13 these work on matrices: the axes before `axis` are the rows, all others the columns.
template <class F>
void alongAxisOrRows(OpImport& c, F&& function) {
  const Value x = c.in(0);
  if (c.version >= 13) return c.out(function(x, c.axis(c.integer("axis", -1), x.rank())));
  const int64_t axis = c.axis(c.integer("axis", 1), x.rank());
  const Value matrix = c.b.reshaped(x, {product(x.shape(), 0, axis), product(x.shape(), axis, x.rank())});
  c.out(c.b.reshaped(function(matrix, 1), x.shape().dims()));
}

void softmax(OpImport& c) {
  alongAxisOrRows(c, [&](Value x, int64_t axis) { return c.b.softmax(x, {.axis = axis}); });
}
void logSoftmax(OpImport& c) {
  alongAxisOrRows(c, [&](Value x, int64_t axis) { return c.b.logSoftmax(x, {.axis = axis}); });
}
void hardmax(OpImport& c) {
  alongAxisOrRows(c, [&](Value x, int64_t axis) {
    if (x.type().elements() == 0) return x;
    const Value place = iota(c.b, x.dim(static_cast<int>(axis)), axis, x.rank());
    return c.b.casted(c.b.equal(place, c.b.argReduce(x, {.axis = axis})), x.kind());
  });
}

void lpNormalization(OpImport& c) {
  const int64_t p = c.integer("p", 2);
  if (p != 1 && p != 2) fail(Code::BadNode, fmt::format("expected 'p' 1 or 2, got {}", p));
  const Value x = widened(c.b, c.in(0));
  const int64_t axis = c.axis(c.integer("axis", -1), x.rank());
  const Value norm =
      p == 1 ? c.b.reduced(c.b.abs(x), "sum", {axis}) : c.b.sqrt(c.b.reduced(c.b.mul(x, x), "sum", {axis}));
  // Rows of zeros stay what they are, and divide nothing by zero, in gradients too.
  const Value zero = c.b.scalarLike(x, 0), isZero = c.b.equal(norm, zero);
  const Value quotient = c.b.div(x, c.b.where(isZero, c.b.scalarLike(x, 1), norm));
  c.out(c.b.casted(c.b.where(isZero, zero, quotient), c.in(0).kind()));
}

void meanVarianceNormalization(OpImport& c) {
  constexpr double kEpsilon = 1e-9;
  const Value x = widened(c.b, c.in(0));
  const std::vector<int64_t> axes = c.axes(c.ints("axes", {0, 2, 3}), x.rank());
  const Value difference = c.b.sub(x, c.b.reduced(x, "mean", axes));
  const Value deviation = c.b.sqrt(c.b.reduced(c.b.mul(difference, difference), "mean", axes));
  c.out(c.b.casted(c.b.div(difference, c.b.add(deviation, c.b.scalarLike(x, kEpsilon))), c.in(0).kind()));
}

}  // namespace

std::span<const OpRow> reduceRows() {
  static constexpr OpRow rows[] = {
      {"ReduceSum", reduce<kSum>},
      {"ReduceMean", reduce<kMean>},
      {"ReduceMax", reduce<kMax>},
      {"ReduceMin", reduce<kMin>},
      {"ReduceProd", reduce<kProd>},
      {"ReduceL1", reduceL1},
      {"ReduceL2", reduceL2},
      {"ReduceLogSum", reduceLogSum},
      {"ReduceLogSumExp", reduceLogSumExp},
      {"ReduceSumSquare", reduceSumSquare},
      {"ArgMax", argMax},
      {"ArgMin", argMin},
      {"TopK", topK},
      {"Softmax", softmax},
      {"LogSoftmax", logSoftmax},
      {"Hardmax", hardmax},
      {"LpNormalization", lpNormalization},
      {"MeanVarianceNormalization", meanVarianceNormalization},
  };
  return rows;
}

}  // namespace aglow::onnx
