// Corners of operators that no model of the ONNX suite reaches.
#include <gtest/gtest.h>

#include <cmath>

#include "onnx_node.h"

namespace aglow {

namespace {

using onnx_writer::Attribute;
using testing_support::floats;
using testing_support::integers;
using testing_support::OnnxNode;
using testing_support::runNode;

Tensor result(const OnnxNode& node) {
  auto results = runNode(node);
  EXPECT_TRUE(results.ok()) << node.op << ": " << results.error().text();
  return results.ok() ? results->front() : Tensor();
}

std::vector<double> values(const OnnxNode& node) { return result(node).doubles(); }

Tensor of(ElemKind kind, const std::vector<int64_t>& dims, const std::vector<int64_t>& list) {
  return Tensor::of(Type(kind, Shape(dims)), list);
}

using Doubles = std::vector<double>;

TEST(ImportConstant, TakesEveryForm) {
  EXPECT_EQ(values({"Constant", {}, {Attribute("value_int", 7)}}), Doubles{7});
  EXPECT_EQ(values({"Constant", {}, {Attribute("value_floats", std::vector<float>{1, 2})}}), (Doubles{1, 2}));
  const onnx_writer::SparseTensor sparse(onnx_writer::Tensor("", onnx_writer::kFloat, {1}).floats({5}),
                                         onnx_writer::Tensor("", onnx_writer::kInt64, {1}).int64s({2}), {4});
  EXPECT_EQ(values({"Constant", {}, {Attribute("sparse_value", sparse)}}), (Doubles{0, 0, 5, 0}));
}

TEST(ImportSlice, HoldsStartAndEndInsideOfTheAxis) {
  const auto sliced = [](int64_t start, int64_t end, int64_t step) {
    return values({"Slice",
                   {floats({4}, {0, 1, 2, 3}), integers({1}, {start}), integers({1}, {end}), integers({1}, {0}),
                    integers({1}, {step})}});
  };
  EXPECT_EQ(sliced(-9, 9, 3), (Doubles{0, 3}));
  EXPECT_EQ(sliced(9, -9, -2), (Doubles{3, 1}));
  EXPECT_EQ(sliced(-9, INT64_MIN, -1), Doubles{0});
  EXPECT_EQ(sliced(INT64_MAX, INT64_MIN, INT64_MIN), Doubles{3});
  EXPECT_EQ(sliced(2, 1, 1), Doubles{});
}

TEST(ImportSplit, LetsOnlyTheLastPieceBeShorter) {
  const OnnxNode node{"Split", {floats({5}, {0, 1, 2, 3, 4})}, {Attribute("num_outputs", 3)}, 18, 3};
  const auto pieces = runNode(node);
  ASSERT_TRUE(pieces.ok()) << pieces.error().text();
  EXPECT_EQ((*pieces)[1].doubles(), (Doubles{2, 3}));
  EXPECT_EQ((*pieces)[2].doubles(), Doubles{4});
}

TEST(ImportPad, ReflectsMoreOftenThanOnceAndWraps) {
  const auto padded = [](const char* mode, int64_t before, int64_t after) {
    return values({"Pad", {floats({3}, {0, 1, 2}), integers({2}, {before, after})}, {Attribute("mode", mode)}});
  };
  EXPECT_EQ(padded("reflect", 5, 1), (Doubles{1, 0, 1, 2, 1, 0, 1, 2, 1}));
  EXPECT_EQ(padded("wrap", 4, 1), (Doubles{2, 0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(padded("edge", -1, 2), (Doubles{1, 2, 2, 2}));
  EXPECT_EQ(padded("constant", 1, -3), Doubles{0});
}

TEST(ImportBitCast, KeepsBitsOfNarrowKindsToo) {
  const auto bits = [](ElemKind from, const std::vector<int64_t>& list, ElemKind to) {
    return values(
        {"BitCast", {of(from, {static_cast<int64_t>(list.size())}, list)}, {Attribute("to", elemInfo(to).onnx)}, 26});
  };
  EXPECT_EQ(bits(ElemKind::Int32, {0x40490000}, ElemKind::Float32), Doubles{3.140625});
  EXPECT_EQ(bits(ElemKind::UInt4, {15, 7}, ElemKind::Int4), (Doubles{-1, 7}));
  EXPECT_EQ(bits(ElemKind::Int4, {-1, 3}, ElemKind::Float4E2M1), (Doubles{-6, 1.5}));
  EXPECT_EQ(bits(ElemKind::Float4E2M1, {-6, 1}, ElemKind::Int4), (Doubles{-1, 2}));
}

TEST(ImportBitShift, ShiftsSignedNumbers) {
  const auto shifted = [](const char* direction, int64_t x, int64_t distance) {
    return values({"BitShift",
                   {of(ElemKind::Int8, {1}, {x}), of(ElemKind::Int8, {1}, {distance})},
                   {Attribute("direction", direction)},
                   28})
        .front();
  };
  EXPECT_EQ(shifted("RIGHT", -5, 1), -3);
  EXPECT_EQ(shifted("RIGHT", -5, 9), -1);
  EXPECT_EQ(shifted("RIGHT", 5, -1), 0);
  EXPECT_EQ(shifted("LEFT", 0x41, 1), -126);
}

TEST(ImportEinsum, TakesDiagonalsEllipsesAndStretchedAxes) {
  const Tensor square = floats({2, 2}, {1, 2, 3, 4});
  const auto summed = [](const char* equation, const std::vector<Tensor>& operands) {
    return values({"Einsum", operands, {Attribute("equation", equation)}});
  };
  EXPECT_EQ(summed("ii", {square}), Doubles{5});
  EXPECT_EQ(summed("...ii->...i", {square}), (Doubles{1, 4}));
  EXPECT_EQ(summed("ba", {square}), (Doubles{1, 3, 2, 4}));
  EXPECT_EQ(summed("ij, jk, k -> i", {square, square, floats({2}, {1, 10})}), (Doubles{7 + 100, 15 + 220}));
  EXPECT_EQ(summed("ij,ij->ij", {square, floats({1, 2}, {10, 100})}), (Doubles{10, 200, 30, 400}));
  EXPECT_EQ(summed("...i,i", {square, floats({2}, {1, 10})}), (Doubles{21, 43}));
}

TEST(ImportDet, SwapsRowsAndKnowsSingularMatrices) {
  const auto det = [](const std::vector<double>& m) {
    const auto n = static_cast<int64_t>(std::sqrt(m.size()));
    return values({"Det", {floats({n, n}, m)}}).front();
  };
  EXPECT_FLOAT_EQ(static_cast<float>(det({0, 1, 2, 0})), -2);
  EXPECT_FLOAT_EQ(static_cast<float>(det({0, 0, 1, 0, 1, 0, 1, 0, 0})), -1);
  EXPECT_EQ(det({0, 0, 0, 5}), 0);
  EXPECT_EQ(det({1, 2, 3, 2, 4, 6, 1, 1, 1}), 0);
}

TEST(ImportLegacy, AlignsOperandsFromAnAxisOn) {
  const Tensor x = floats({2, 2, 2}, {0, 0, 0, 0, 0, 0, 0, 0}), y = floats({2}, {1, 2});
  EXPECT_EQ(values({"Add", {x, y}, {Attribute("broadcast", 1), Attribute("axis", 0)}, 6}),
            (Doubles{1, 1, 1, 1, 2, 2, 2, 2}));
  EXPECT_EQ(values({"Add", {x, y}, {Attribute("broadcast", 1)}, 6}), (Doubles{1, 2, 1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(values({"Greater", {y, floats({2}, {0, 9})}, {}, 6}), (Doubles{1, 0}));
  EXPECT_FALSE(runNode({"Add", {x, y}, {}, 6}).ok());
}

TEST(ImportMaxPool, CountsColumnsFirstWhereAsked) {
  const OnnxNode node{"MaxPool",
                      {floats({1, 1, 2, 3}, {0, 1, 2, 3, 9, 5})},
                      {Attribute("kernel_shape", std::vector<int64_t>{2, 2}), Attribute("storage_order", 1)},
                      12,
                      2};
  const auto results = runNode(node);
  ASSERT_TRUE(results.ok()) << results.error().text();
  EXPECT_EQ((*results)[1].doubles(), (Doubles{3, 3}));  // column 1, row 1
}

TEST(ImportLpPool, CountsPaddingAsZeros) {
  const OnnxNode node{"LpPool",
                      {floats({1, 1, 3}, {3, 4, 12})},
                      {Attribute("kernel_shape", std::vector<int64_t>{2}),
                       Attribute("strides", std::vector<int64_t>{2}), Attribute("ceil_mode", 1)},
                      18};
  EXPECT_EQ(values(node), (Doubles{5, 12}));
}

TEST(ImportQuantizeLinear, DividesInTheScalesPrecision) {
  const Tensor x = floats({1}, {1.0009765625 * 3}), zero = of(ElemKind::UInt16, {}, {0});
  const Tensor scale = Tensor::of(Type(ElemKind::Float16, Shape{}), std::vector<double>{0x1p-12});
  // 3.0029296875 * 4096 = 12300; f16 has only multiples of 8 there.
  EXPECT_EQ(values({"QuantizeLinear", {x, scale, zero}, {}, 23}), Doubles{12304});
  EXPECT_EQ(values({"QuantizeLinear", {x, scale, zero}, {Attribute("precision", 1)}, 23}), Doubles{12300});
}

TEST(ImportNorms, GiveTheKindOfTheirScale) {
  const Tensor halves = of(ElemKind::Float16, {1, 2}, {1, 3}), scale = floats({2}, {1, 2});
  const Tensor layer = result({"LayerNormalization", {halves, scale}, {Attribute("epsilon", 0.0F)}, 12});
  EXPECT_EQ(layer.type().kind(), ElemKind::Float32);
  EXPECT_EQ(layer.doubles(), (Doubles{-1, 2}));
  EXPECT_FALSE(runNode({"LayerNormalization", {halves, scale}, {}, 17}).ok());
  const Tensor rms = result({"RMSNormalization",
                             {floats({1, 2}, {1, 1}), of(ElemKind::Float16, {2}, {1, 2})},
                             {Attribute("epsilon", 0.0F)},
                             23});
  EXPECT_EQ(rms.type().kind(), ElemKind::Float16);
  EXPECT_EQ(rms.doubles(), (Doubles{1, 2}));
}

TEST(ImportUnique, TellsRowsOfAnAxisApart) {
  const OnnxNode node{
      "Unique", {floats({3, 2}, {1, 0, NAN, 2, 1, 0})}, {Attribute("axis", 0), Attribute("sorted", 0)}, 11, 4};
  const auto results = runNode(node);
  ASSERT_TRUE(results.ok()) << results.error().text();
  EXPECT_EQ((*results)[1].doubles(), (Doubles{0, 1}));
  EXPECT_EQ((*results)[2].doubles(), (Doubles{0, 1, 0}));
  EXPECT_EQ((*results)[3].doubles(), (Doubles{2, 1}));
}

TEST(ImportReverseSequence, RefusesLengthsBeyondTheAxis) {
  const auto reversed = runNode({"ReverseSequence", {floats({2, 1}, {1, 2}), integers({1}, {3})}, {}, 10});
  ASSERT_FALSE(reversed.ok());
  EXPECT_EQ(reversed.error().code, Code::RuntimeValue);
}

}  // namespace

}  // namespace aglow
