// Matrix products.
#include <fmt/format.h>

#include <algorithm>

#include "import/caffe2/linear.h"
#include "import/caffe2/op_tables.h"

namespace aglow::caffe2 {

FcOperands fcOperands(const OpImport& c, Value x, Value w, bool transposedWeights) {
  const int64_t axis = c.axis(intArg(c, "axis", 1), x.rank());
  const int64_t axisW = c.axis(intArg(c, "axis_w", 1), w.rank());
  const Value rows = asMatrix(c.b, x, axis);
  Value weights = asMatrix(c.b, w, axisW);  // [out, in], or [in, out]
  if (!transposedWeights) weights = c.b.transposed(weights, {1, 0});
  if (rows.dim(1) != weights.dim(0))
    fail(Code::BadNode, fmt::format("expected weights for rows of {} elements (from axis {} of {} on), got {}",
                                    rows.dim(1), axis, x.type().text(), w.type().text()));
  std::vector<int64_t> dims(x.shape().dims().begin(), x.shape().dims().begin() + axis);
  dims.push_back(weights.dim(1));
  return {rows, weights, std::move(dims)};
}

namespace {

void fullyConnected(OpImport& c, bool transposedWeights) {
  // Weights may be kept narrower than what they are multiplied with.
  const Value weights = isFloat(c.in(1).kind()) ? c.b.casted(c.in(1), c.in(0).kind()) : c.in(1);
  const FcOperands fc = fcOperands(c, c.in(0), weights, transposedWeights);
  Value y = c.b.matMul(fc.rows, fc.weights);
  if (c.has(2)) {
    if (c.in(2).type().elements() != fc.dims.back())
      fail(Code::BadNode, fmt::format("expected {} values of bias, got {}", fc.dims.back(), c.in(2).type().text()));
    const Value bias = isFloat(c.in(2).kind()) ? c.b.casted(c.in(2), y.kind()) : c.in(2);
    y = c.b.add(y, c.b.reshaped(bias, {fc.dims.back()}));
  }
  c.out(c.b.reshaped(y, fc.dims));
}

void fc(OpImport& c) { fullyConnected(c, false); }
void fcTransposed(OpImport& c) { fullyConnected(c, true); }

// Rows are the axes before an axis of each operand, columns those from it on.
void matMul(OpImport& c) {
  const Value a = c.in(0), b = c.in(1);
  Value left = asMatrix(c.b, a, c.axis(intArg(c, "axis_a", 1), a.rank()));
  Value right = asMatrix(c.b, b, c.axis(intArg(c, "axis_b", 1), b.rank()));
  if (flag(c, "trans_a")) left = c.b.transposed(left, {1, 0});
  if (flag(c, "trans_b")) right = c.b.transposed(right, {1, 0});
  c.out(c.b.matMul(left, right));
}

// Batches of matrices, broadcast as numpy's; vectors are rows at the left and columns at the right.
void batchMatMul(OpImport& c) {
  const auto swapped = [&](Value x, std::string_view name) {
    if (!flag(c, name) || x.rank() < 2) return x;
    std::vector<int64_t> perm = range(0, x.rank());
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return c.b.transposed(x, perm);
  };
  c.out(onnx::matrixProduct(c.b, swapped(c.in(0), "trans_a"), swapped(c.in(1), "trans_b")));
}

// Products of rows, summed.
void dotProduct(OpImport& c) {
  const Value x = c.in(0), y = c.in(1);
  if (x.shape() != y.shape() || x.rank() < 1)
    fail(Code::BadNode, fmt::format("expected operands of one shape, got {} and {}", x.type().text(), y.type().text()));
  c.out(c.b.reduced(c.b.mul(x, y), "sum", range(1, x.rank()), false));
}

// Half of the squared distance, row by row.
void squaredL2Distance(OpImport& c) {
  const Value x = c.in(0), difference = c.b.sub(x, c.in(1));
  if (x.rank() < 1) fail(Code::BadNode, fmt::format("expected rows, got {}", x.type().text()));
  const Value sum = c.b.reduced(c.b.mul(difference, difference), "sum", range(1, x.rank()), false);
  c.out(c.b.mul(sum, c.b.scalarLike(sum, 0.5)));
}

void l1Distance(OpImport& c) {
  const Value x = c.in(0);
  if (x.rank() < 1) fail(Code::BadNode, fmt::format("expected rows, got {}", x.type().text()));
  c.out(c.b.reduced(c.b.abs(c.b.sub(x, c.in(1))), "sum", range(1, x.rank()), false));
}

void cosineSimilarity(OpImport& c) {
  const Value x = c.in(0), y = c.in(1);
  if (x.shape() != y.shape() || x.rank() < 1)
    fail(Code::BadNode, fmt::format("expected operands of one shape, got {} and {}", x.type().text(), y.type().text()));
  const auto dot = [&](Value a, Value b) { return c.b.reduced(c.b.mul(a, b), "sum", range(1, x.rank()), false); };
  const Value least = c.b.scalarLike(x, 1e-12);
  const auto norm = [&](Value v) { return c.b.sqrt(c.b.max(dot(v, v), least)); };
  c.out(c.b.div(dot(x, y), c.b.mul(norm(x), norm(y))));
}

}  // namespace

std::span<const OpRow> linearRows() {
  static constexpr OpRow rows[] = {
      row("FC", fc),
      row("FbFCPacked", fc),
      row("FCTransposed", fcTransposed),
      row("MatMul", matMul),
      row("BatchMatMul", batchMatMul),
      row("DotProduct", dotProduct),
      row("SquaredL2Distance", squaredL2Distance),
      row("L1Distance", l1Distance),
      row("CosineSimilarity", cosineSimilarity),
  };
  return rows;
}

}  // namespace aglow::caffe2
