// Operators of com.microsoft that the standard has by now, and small ones that it lacks.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "import/onnx/op_contrib.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

// The operator of the same name and operands in the standard domain.
template <int64_t kOpset>
void asStandard(OpImport& c) {
  std::vector<Imported> operands;
  for (int i = 0; i < c.inputs(); ++i) operands.push_back(c.operand(i));
  std::vector<Imported> results = c.standard(standardNode(c, c.node.opType), kOpset, std::move(operands));
  for (size_t i = 0; i < results.size(); ++i) c.out(static_cast<int>(i), std::move(results[i]));
}

void identity(OpImport& c) { c.out(c.in(0)); }

void range(OpImport& c) {
  const auto scalar = [&](int i) { return asScalar(c.b, c.in(i), "range"); };
  c.out(standardValue(c, "Range", 11, {scalar(0), scalar(1), c.has(2) ? scalar(2) : c.b.scalarLike(c.in(0), 1)}));
}

void expandDims(OpImport& c) {
  const Value x = c.in(0);
  c.out(unsqueezed(c.b, x, c.axis(c.constantInt(1), x.rank() + 1)));
}

// Distinct values in the order in which they come, which of them each element is, and how often each comes.
void unique(OpImport& c) {
  Node node = standardNode(c, "Unique");
  node.attributes = {intAttribute("sorted", 0)};
  node.outputs = {"y", "first", "index", "count"};
  const std::vector<Imported> results = c.standard(node, 11, {c.operand(0)});
  c.out(0, results[0]);
  c.out(1, results[2]);
  c.out(2, results[3]);
}

void torchEmbedding(OpImport& c) { c.out(c.b.gather(c.in(0), c.in(1))); }

void unfoldTensor(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  const int64_t axis = c.axis(c.integer("dim", -1), x.rank()), extent = x.dim(static_cast<int>(axis));
  const int64_t size = c.integer("size"), step = c.integer("step", 1);
  if (size < 1 || step < 1 || size > extent)
    fail(Code::BadNode,
         fmt::format("expected a positive 'step' and a 'size' up to {}, got {} and {}", extent, step, size));
  const int64_t count = (extent - size) / std::min(step, extent + 1) + 1;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < size; ++j) places.push_back(i * step + j);
  const Value windows =
      b.gather(x, b.constant(Tensor::of(Type(ElemKind::Int64, Shape{count, size}), places)), {.axis = axis});
  std::vector<int64_t> perm = onnx::range(0, windows.rank());
  std::rotate(perm.begin() + axis + 1, perm.begin() + axis + 2, perm.end());
  c.out(b.transposed(windows, std::move(perm)));
}

// ---------------------------------------------------------------- numbers

void isAllFinite(OpImport& c) {
  Builder& b = c.b;
  const bool nanOnly = c.flag("isnan_only"), infOnly = c.flag("isinf_only");
  Value result;
  for (const Value x : c.all()) {
    const Value bad = nanOnly ? b.isNan(x) : infOnly ? b.isInf(x) : b.logicalOr(b.isNan(x), b.isInf(x));
    const Value fine = b.logicalNot(b.reduced(bad, "max", onnx::range(0, x.rank()), false));
    result = result ? b.logicalAnd(result, fine) : fine;
  }
  if (!result) fail(Code::BadNode, "expected at least one operand");
  c.out(result);
}

// Real and imaginary parts lie along the last axis.
void complexProduct(OpImport& c, bool conjugate) {
  Builder& b = c.b;
  if (c.in(0).rank() == 0 || c.in(1).rank() == 0 || c.in(0).dim(c.in(0).rank() - 1) != 2 ||
      c.in(1).dim(c.in(1).rank() - 1) != 2)
    fail(Code::BadNode, fmt::format("expected pairs along the last axis, got {} and {}", c.in(0).type().text(),
                                    c.in(1).type().text()));
  const std::vector<Value> x = splitLast(b, c.in(0), 2), y = splitLast(b, c.in(1), 2);
  const Value same = b.mul(x[0], y[0]), crossed = b.mul(x[1], y[1]);
  const Value first = b.mul(x[1], y[0]), second = b.mul(x[0], y[1]);
  const Value realPart = conjugate ? b.add(same, crossed) : b.sub(same, crossed);
  const Value imaginary = conjugate ? b.sub(first, second) : b.add(first, second);
  c.out(b.concat({realPart, imaginary}, {.axis = realPart.rank() - 1}));
}
void complexMul(OpImport& c) { complexProduct(c, false); }
void complexMulConj(OpImport& c) { complexProduct(c, true); }

void rfft(OpImport& c) {
  if (c.integer("signal_ndim", 1) != 1 || c.integer("onesided", 1) != 1 || c.flag("normalized"))
    fail(Code::UnsupportedFeature, "transforms over several axes, of both sides, or normalized, are not supported");
  Node node = standardNode(c, "DFT");
  node.attributes = {intAttribute("onesided", 1)};
  const Value x = c.in(0);
  c.out(0, c.standard(node, 20, {Imported::of(unsqueezed(c.b, x, x.rank()))}).front());
}

void cDist(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0), y = c.in(1);
  if (x.rank() != 2 || y.rank() != 2 || x.dim(1) != y.dim(1))
    fail(Code::BadNode, fmt::format("expected rows of one length, got {} and {}", x.type().text(), y.type().text()));
  const std::string metric = c.word("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean")
    fail(Code::UnsupportedFeature,
         fmt::format("the metric '{}' is not supported; sqeuclidean and euclidean are", metric));
  const auto squares = [&](Value v) { return b.reduced(b.mul(v, v), "sum", {1}); };
  const Value products = b.matMul(b.mul(x, b.scalarLike(x, -2)), b.transposed(y, {1, 0}));
  const Value sum = b.add(b.add(products, squares(x)), b.transposed(squares(y), {1, 0}));
  const Value distance = b.max(sum, b.scalarLike(sum, 0));
  c.out(metric == "euclidean" ? b.sqrt(distance) : distance);
}

// Gauss and Jordan: the matrix becomes the identity, one column after the other, and the identity beside it the
// inverse.
void inverse(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  const int rank = x.rank();
  if (rank < 2 || x.dim(rank - 1) != x.dim(rank - 2))
    fail(Code::BadNode, fmt::format("expected square matrices, got {}", x.type().text()));
  constexpr int64_t kMost = 256;
  const int64_t size = x.dim(rank - 1), count = product(x.shape(), 0, rank - 2);
  if (size > kMost)
    fail(Code::UnsupportedFeature, fmt::format("inverses of more than {} rows are not supported", kMost));
  const Value matrix = widened(b, b.reshaped(x, {count, size, size}));
  std::vector<double> unit(static_cast<size_t>(size * size), 0);
  for (int64_t i = 0; i < size; ++i) unit[static_cast<size_t>(i * size + i)] = 1;
  const Value identity = b.constant(Tensor::of(Type(matrix.kind(), Shape{1, size, size}), unit));
  Value rest = b.concat({matrix, b.expand(identity, {.shape = {count, size, size}})}, {.axis = 2});
  const Value row = iota(b, size, 1, 3);
  for (int64_t i = 0; i < size; ++i) {
    const Value here = b.scalar(ElemKind::Int64, static_cast<double>(i));
    const Value column = sliced(b, sliced(b, rest, 2, i, 1), 1, i, size - i);
    const Value best = b.add(b.argReduce(b.abs(column), {.axis = 1}), here);  // [count, 1, 1]
    const Value order = b.where(b.equal(row, here), best, b.where(b.equal(row, best), here, row));
    rest = b.gatherND(rest, order, {.batchDims = 1});
    const Value first = sliced(b, rest, 1, i, 1);
    const Value scaled = b.div(first, sliced(b, first, 2, i, 1));
    rest = b.where(b.equal(row, here), scaled, b.sub(rest, b.mul(sliced(b, rest, 2, i, 1), scaled)));
  }
  c.out(b.reshaped(b.casted(sliced(b, rest, 2, size, size), x.kind()), x.shape().dims()));
}

// ---------------------------------------------------------------- tokens

// The hash of each element's bytes, four at a time.
void murmurHash3(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  const int width = elemInfo(x.kind()).bits;
  if (width != 32 && width != 64)
    fail(Code::BadNode, fmt::format("expected elements of 32 or 64 bits, got {}", x.type().text()));
  const ElemKind bitsKind = width == 32 ? ElemKind::UInt32 : ElemKind::UInt64;
  const Value bits = x.kind() == bitsKind ? x : b.bitcast(x, {.to = bitsKind});
  const auto u32 = [&](uint32_t value) { return b.scalar(ElemKind::UInt32, static_cast<double>(value)); };
  const auto turned = [&](Value v, uint32_t by) {
    return b.bitOr(b.shiftLeft(v, u32(by)), b.shiftRight(v, u32(32 - by)));
  };
  std::vector<Value> words{b.casted(bits, ElemKind::UInt32)};
  if (width == 64) words.push_back(b.casted(b.shiftRight(bits, b.scalar(ElemKind::UInt64, 32)), ElemKind::UInt32));
  Value hash = u32(static_cast<uint32_t>(c.integer("seed", 0)));
  for (const Value word : words) {
    const Value mixed = b.mul(turned(b.mul(word, u32(0xcc9e2d51U)), 15), u32(0x1b873593U));
    hash = b.add(b.mul(turned(b.bitXor(mixed, hash), 13), u32(5)), u32(0xe6546b64U));
  }
  hash = b.bitXor(hash, u32(static_cast<uint32_t>(width / 8)));
  const auto folded = [&](Value v, uint32_t by) { return b.bitXor(v, b.shiftRight(v, u32(by))); };
  hash = b.mul(folded(hash, 16), u32(0x85ebca6bU));
  hash = folded(b.mul(folded(hash, 13), u32(0xc2b2ae35U)), 16);
  c.out(c.flag("positive", true) ? hash : b.bitcast(hash, {.to = ElemKind::Int32}));
}

// Where the last words of a row came before, the word that followed them then is banned.
void nGramRepeatBlock(OpImport& c) {
  Builder& b = c.b;
  const Value ids = c.in(0), scores = c.in(1);
  const int64_t size = c.integer("ngram_size");
  if (ids.rank() != 2 || scores.rank() != 2 || ids.dim(0) != scores.dim(0) || size < 1)
    fail(Code::BadNode, fmt::format("expected [batch, length] words, [batch, vocabulary] scores and a positive size, "
                                    "got {}, {} and {}",
                                    ids.type().text(), scores.type().text(), size));
  const int64_t length = ids.dim(1), count = length - size + 1;
  if (count < 1) return c.out(scores);
  const Value last = sliced(b, ids, 1, size - 1, count);
  Value same = b.equal(last, last);
  for (int64_t i = 0; i < size - 1; ++i)
    same = b.logicalAnd(same, b.equal(sliced(b, ids, 1, i, count), sliced(b, ids, 1, length - size + 1 + i, 1)));
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const Value ban = b.where(same, b.scalarLike(scores, -kInfinite), b.scalarLike(scores, kInfinite));
  c.out(b.scatterElements(scores, last, ban, {.axis = 1, .reduction = "min"}));
}

}  // namespace

std::span<const OpRow> contribMiscRows() {
  static constexpr OpRow rows[] = {
      microsoft("GatherND", asStandard<13>),
      microsoft("GridSample", asStandard<16>),
      microsoft("Pad", asStandard<13>),
      microsoft("Trilu", asStandard<14>),
      microsoft("Range", range),
      microsoft("SampleOp", identity),
      microsoft("ExpandDims", expandDims),
      alone(microsoft("Unique", unique)),
      microsoft("TorchEmbedding", torchEmbedding),
      microsoft("UnfoldTensor", unfoldTensor),
      microsoft("IsAllFinite", isAllFinite),
      microsoft("ComplexMul", complexMul),
      microsoft("ComplexMulConj", complexMulConj),
      microsoft("Rfft", rfft),
      microsoft("CDist", cDist),
      microsoft("Inverse", inverse),
      microsoft("MurmurHash3", murmurHash3),
      microsoft("NGramRepeatBlock", nGramRepeatBlock),
  };
  return rows;
}

}  // namespace aglow::onnx
