// Products, convolutions and activations of com.microsoft that optimizers fuse; they come apart again here, so that the
// rest of the compiler sees the operators it knows.
#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/op_contrib.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

// The operand of a product with its axes swapped as flags say: the batch axes move to the first one's place, then the
// last two change places.
Value turned(OpImport& c, Value x, std::string_view flag, std::string_view batchFlag) {
  const int rank = x.rank();
  const bool matrix = c.flag(flag), batch = c.flag(batchFlag);
  if (rank < 2 || (!matrix && !batch)) return x;
  std::vector<int64_t> perm = range(0, rank);
  if (batch) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (matrix) std::swap(perm[static_cast<size_t>(rank) - 2], perm[static_cast<size_t>(rank) - 1]);
  return c.b.transposed(x, std::move(perm));
}

Value scaled(Builder& b, Value x, double factor) { return factor == 1 ? x : b.mul(x, b.scalarLike(x, factor)); }

void fusedMatMul(OpImport& c) {
  const Value product =
      matrixProduct(c.b, turned(c, c.in(0), "transA", "transBatchA"), turned(c, c.in(1), "transB", "transBatchB"));
  c.out(activated(c, scaled(c.b, product, c.real("alpha", 1))));
}

void fusedGemm(OpImport& c) {
  constexpr int64_t kOpset = 13;
  c.out(activated(c, standardValue(c, "Gemm", kOpset, {c.in(0), c.in(1), c.optional(2)})));
}

void gemmFastGelu(OpImport& c) {
  Value y = matrixProduct(c.b, c.in(0), c.in(1));
  if (c.has(2)) y = c.b.add(y, c.in(2));
  c.out(c.b.geluTanh(y));
}

// Convolution, addition of a fourth operand, activation.
Value fusedConvOf(OpImport& c, Value x, Value addend) {
  constexpr int64_t kOpset = 11;
  Value y = standardValue(c, "Conv", kOpset, {x, c.in(1), c.optional(2)});
  if (addend) y = c.b.add(y, addend);
  return activated(c, y);
}

void fusedConv(OpImport& c) { c.out(fusedConvOf(c, c.in(0), c.optional(3))); }

void nhwcFusedConv(OpImport& c) {
  const Value addend = c.has(3) ? channelsFirst(c.b, c.in(3)) : Value{};
  c.out(channelsLast(c.b, fusedConvOf(c, channelsFirst(c.b, c.in(0)), addend)));
}

// Pads that come as an operand instead of an attribute.
void convTransposeWithDynamicPads(OpImport& c) {
  constexpr int64_t kOpset = 11;
  Node node = standardNode(c, "ConvTranspose");
  if (c.has(2)) {
    Attribute pads;
    pads.name = "pads";
    pads.type = AttributeType::Ints;
    pads.ints = c.constantInts(2);
    node.attributes.push_back(std::move(pads));
  }
  c.out(0, c.standard(node, kOpset, {c.operand(0), c.operand(1), c.operand(3)}).front());
}

void gelu(OpImport& c) { c.out(c.b.gelu(c.in(0))); }
void biasGelu(OpImport& c) { c.out(c.b.gelu(c.b.add(c.in(0), c.in(1)))); }
void fastGelu(OpImport& c) { c.out(c.b.geluTanh(c.has(1) ? c.b.add(c.in(0), c.in(1)) : c.in(0))); }
void quickGelu(OpImport& c) { c.out(c.b.swish(c.in(0), {.alpha = c.real("alpha", 1.702f)})); }

void scaledSilu(OpImport& c) {
  const Value x = c.in(0);
  const Value scale = c.has(1) ? c.b.casted(asScalar(c.b, c.in(1), "scale"), x.kind()) : Value{};
  c.out(c.b.swish(scale ? c.b.mul(x, scale) : scaled(c.b, x, c.real("alpha", 1))));
}

void biasAdd(OpImport& c) { c.out(c.b.add(c.b.add(c.in(0), c.in(1)), c.in(2))); }
void gatedAdd(OpImport& c) { c.out(c.b.add(c.in(0), c.b.mul(c.in(1), c.in(2)))); }

void biasSplitGelu(OpImport& c) {
  const std::vector<Value> halves = splitLast(c.b, c.b.add(c.in(0), c.in(1)), 2);
  c.out(c.b.mul(halves[0], c.b.gelu(halves[1])));
}

// The axes from `axis` on count as one.
void biasSoftmax(OpImport& c) {
  Builder& b = c.b;
  const Value sum = b.add(c.in(0), c.in(1));
  const int64_t axis = c.axis(c.integer("axis", 1), sum.rank());
  const Value rows = b.reshaped(sum, {product(sum.shape(), 0, axis), product(sum.shape(), axis, sum.rank())});
  c.out(b.reshaped(b.softmax(rows, {.axis = 1}), sum.shape().dims()));
}

// As the standard Dropout, between two additions.
void biasDropout(OpImport& c) {
  constexpr int64_t kOpset = 13;
  Node node = standardNode(c, "Dropout");
  const Value sum = c.b.add(c.in(0), c.in(1));
  std::vector<Imported> results = c.standard(node, kOpset, {Imported::of(sum), c.operand(3), c.operand(4)});
  c.out(0, c.has(2) ? c.b.add(results.front().tensor, c.in(2)) : results.front().tensor);
  if (c.wants(1)) c.out(1, results[1]);
}

}  // namespace

std::span<const OpRow> contribFusedRows() {
  static constexpr OpRow rows[] = {
      microsoft("FusedMatMul", fusedMatMul),
      microsoft("TransposeMatMul", fusedMatMul),
      microsoft("FusedMatMulActivation", fusedMatMul),
      microsoft("FusedGemm", fusedGemm),
      microsoft("GemmFastGelu", gemmFastGelu),
      microsoft("FusedConv", fusedConv),
      microsoft("NhwcConv", nhwcFusedConv),
      microsoft("NhwcFusedConv", nhwcFusedConv),
      microsoft("ConvTransposeWithDynamicPads", convTransposeWithDynamicPads),
      microsoft("Gelu", gelu),
      microsoft("BiasGelu", biasGelu),
      microsoft("FastGelu", fastGelu),
      microsoft("QuickGelu", quickGelu),
      microsoft("ScaledSiLU", scaledSilu),
      microsoft("BiasAdd", biasAdd),
      microsoft("GatedAdd", gatedAdd),
      microsoft("BiasSplitGelu", biasSplitGelu),
      microsoft("BiasSoftmax", biasSoftmax),
      microsoft("BiasDropout", biasDropout),
  };
  return rows;
}

}  // namespace aglow::onnx
