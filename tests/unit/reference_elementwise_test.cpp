// Elementwise operators: broadcasting, the arithmetic of each domain, and the formulas against the C++ library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>

#include "unit/reference_harness.h"

namespace aglow {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;
using enum ElemKind;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

TEST(Elementwise, StretchesOperands) {
  const Tensor y = runOne("Add", {counted(Float32, {2, 1, 3}), f32({4, 1}, {10, 20, 30, 40})});
  ASSERT_EQ(y.type().text(), "f32[2,4,3]");
  EXPECT_THAT(y.doubles(), ElementsAre(10, 11, 12, 20, 21, 22, 30, 31, 32, 40, 41, 42,  //
                                       13, 14, 15, 23, 24, 25, 33, 34, 35, 43, 44, 45));
}

TEST(Elementwise, StretchesThreeOperandsAtOnce) {
  const Tensor y = runOne("Clip", {counted(Int64, {2, 3}), i64({2, 1}, {1, 4}), i64({}, {4})});
  EXPECT_THAT(y.toInts(), ElementsAre(1, 1, 2, 4, 4, 4));
}

TEST(Elementwise, ReadsRunsLongerAndShorterThanAChunk) {
  // 7 * 300 elements cross chunks in the middle of rows.
  const Tensor y = runOne("Add", {counted(Int32, {7, 300}),
                                  Tensor::of(Type(Int32, {7, 1}), std::vector<int64_t>{0, 1000, 0, 3000, 0, 0, 6000})});
  const std::vector<int64_t> values = y.toInts();
  for (int64_t i = 0; i < 2100; ++i) {
    const int64_t row = i / 300;
    const int64_t added = row == 1 || row == 3 || row == 6 ? row * 1000 : 0;
    ASSERT_EQ(values[static_cast<size_t>(i)], i + added) << i;
  }
}

TEST(Elementwise, TakesScalarsAndNothing) {
  EXPECT_THAT(runOne("Mul", {f32({}, {3}), f32({}, {4})}).doubles(), ElementsAre(12));
  EXPECT_THAT(runOne("Mul", {f32({0, 2}, {}), f32({2}, {1, 2})}).doubles(), IsEmpty());
}

TEST(Elementwise, ExpandsToALargerShape) {
  const Attrs attrs = attrsOf("Expand").set("shape", std::vector<int64_t>{2, 2, 2});
  EXPECT_THAT(runOne(attrs, {f32({2, 1}, {1, 2})}).doubles(), ElementsAre(1, 1, 2, 2, 1, 1, 2, 2));
}

TEST(Elementwise, DividesIntegersWithoutTraps) {
  const auto divide = [](int64_t a, int64_t b) { return runOne("Div", {i64({}, {a}), i64({}, {b})}).toInts()[0]; };
  EXPECT_EQ(divide(7, 2), 3);
  EXPECT_EQ(divide(-7, 2), -3);
  EXPECT_EQ(divide(7, 0), 0);
  EXPECT_EQ(divide(kLowest, -1), kLowest);
}

TEST(Elementwise, TakesRemainders) {
  const Tensor a = i64({6}, {7, -7, 7, -7, 7, kLowest});
  const Tensor b = i64({6}, {3, 3, -3, -3, 0, -1});
  EXPECT_THAT(runOne("Rem", {a, b}).toInts(), ElementsAre(1, -1, 1, -1, 0, 0));
  EXPECT_THAT(runOne("Mod", {a, b}).toInts(), ElementsAre(1, 2, -2, -1, 0, 0));
  const Tensor x = f32({4}, {5.5, -5.5, 5.5, -5.5});
  const Tensor y = f32({4}, {2, 2, -2, -2});
  EXPECT_THAT(runOne("Rem", {x, y}).doubles(), ElementsAre(1.5, -1.5, 1.5, -1.5));
  EXPECT_THAT(runOne("Mod", {x, y}).doubles(), ElementsAre(1.5, 0.5, -0.5, -1.5));
}

TEST(Elementwise, RaisesIntegersExactly) {
  const Tensor base = i64({7}, {3, -2, 2, 1, -1, -1, 0});
  const Tensor exponent = i64({7}, {39, 3, -1, -5, -5, -4, 0});
  EXPECT_THAT(runOne("Pow", {base, exponent}).toInts(), ElementsAre(4052555153018976267, -8, 0, 1, -1, 1, 1));
  EXPECT_THAT(runOne("Pow", {ints(UInt8, {3}), ints(Int64, {6})}).toInts(), ElementsAre(729 % 256));
  EXPECT_THAT(runOne("Pow", {i64({1}, {4}), f32({1}, {0.5})}).toInts(), ElementsAre(2));
  EXPECT_THAT(runOne("Pow", {f32({2}, {2, 0.5}), i64({2}, {10, -2})}).doubles(), ElementsAre(1024, 4));
}

TEST(Elementwise, WrapsNarrowIntegers) {
  EXPECT_THAT(runOne("Add", {ints(Int8, {127, -128}), ints(Int8, {1, -1})}).toInts(), ElementsAre(-128, 127));
  EXPECT_THAT(runOne("Sub", {ints(UInt8, {1}), ints(UInt8, {2})}).toInts(), ElementsAre(255));
  EXPECT_THAT(runOne("Mul", {ints(Int4, {7}), ints(Int4, {3})}).toInts(), ElementsAre(5));
  EXPECT_THAT(runOne("Neg", {ints(UInt16, {1})}).toInts(), ElementsAre(65535));
  EXPECT_THAT(runOne("Abs", {ints(Int64, {kLowest, -5, 5})}).toInts(), ElementsAre(kLowest, 5, 5));
  EXPECT_THAT(runOne("BitNot", {ints(UInt2, {1})}).toInts(), ElementsAre(2));
}

TEST(Elementwise, ShiftsToZeroPastTheWidth) {
  const Tensor by = ints(UInt8, {1, 7, 8, 200});
  EXPECT_THAT(runOne("ShiftLeft", {ints(UInt8, {255, 255, 255, 255}), by}).toInts(), ElementsAre(254, 128, 0, 0));
  EXPECT_THAT(runOne("ShiftRight", {ints(UInt8, {255, 255, 255, 255}), by}).toInts(), ElementsAre(127, 1, 0, 0));
  EXPECT_THAT(runOne("ShiftLeft", {ints(UInt64, {1, 1}), ints(UInt64, {63, 64})}).toInts(), ElementsAre(kLowest, 0));
}

TEST(Elementwise, ComparesWideIntegersExactly) {
  // As doubles these would be equal.
  EXPECT_THAT(runOne("Less", {ints(Int64, {kHighest - 1}), ints(Int64, {kHighest})}).toInts(), ElementsAre(1));
  EXPECT_THAT(runOne("Equal", {ints(UInt64, {-1}), ints(UInt64, {-2})}).toInts(), ElementsAre(0));
  // All ones is the largest of the unsigned.
  EXPECT_THAT(runOne("Less", {ints(UInt64, {1}), ints(UInt64, {-1})}).toInts(), ElementsAre(1));
  EXPECT_THAT(runOne("Max", {ints(UInt64, {1}), ints(UInt64, {-1})}).toInts(), ElementsAre(-1));
}

TEST(Elementwise, LetsNanWinInMinAndMax) {
  const Tensor a = f32({3}, {kNan, 1, 1});
  const Tensor b = f32({3}, {1, kNan, 2});
  for (const char* op : {"Min", "Max"}) {
    const std::vector<double> y = runOne(op, {a, b}).doubles();
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1])) << op;
    EXPECT_EQ(y[2], op == std::string("Min") ? 1 : 2);
  }
}

TEST(Elementwise, RoundsHalvesToEvenInAnyRoundingMode) {
  const Tensor x = f32({8}, {0.5, 1.5, 2.5, -0.5, -1.5, 2.4, -2.6, kInf});
  const int mode = std::fegetround();
  std::fesetround(FE_UPWARD);
  const std::vector<double> y = runOne("Round", {x}).doubles();
  std::fesetround(mode);
  EXPECT_THAT(y, ElementsAre(0, 2, 2, 0, -2, 2, -3, kInf));
  EXPECT_TRUE(std::signbit(y[3]));
}

TEST(Elementwise, AnswersWithBool) {
  const Tensor x = f32({4}, {kInf, -kInf, kNan, 1});
  EXPECT_THAT(runOne("IsNan", {x}).toInts(), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(runOne("IsInf", {x}).toInts(), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(runOne(attrsOf("IsInf").set("detect_negative", int64_t{0}), {x}).toInts(), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(runOne("LessOrEqual", {x, f32({}, {1})}).toInts(), ElementsAre(0, 1, 0, 1));
  const Tensor p = ints(Bool, {0, 0, 1, 1});
  const Tensor q = ints(Bool, {0, 1, 0, 1});
  EXPECT_THAT(runOne("And", {p, q}).toInts(), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(runOne("Or", {p, q}).toInts(), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(runOne("Xor", {p, q}).toInts(), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(runOne("Not", {p}).toInts(), ElementsAre(1, 1, 0, 0));
}

TEST(Elementwise, ChoosesByCondition) {
  const Tensor condition = ints(Bool, {1, 0});
  EXPECT_THAT(runOne("Where", {condition, f32({2}, {0.5, 1}), f32({}, {-0.25})}).doubles(), ElementsAre(0.5, -0.25));
  EXPECT_THAT(runOne("Where", {condition, ints(Int64, {kHighest, 0}), ints(Int64, {0, kLowest})}).toInts(),
              ElementsAre(kHighest, kLowest));
  EXPECT_THAT(runOne("Where", {condition, ints(Bool, {1, 0}), ints(Bool, {0, 1})}).toInts(), ElementsAre(1, 1));
}

TEST(Elementwise, KnowsSigns) {
  const std::vector<double> y = runOne("Sign", {f32({4}, {-3, 0, 5, kNan})}).doubles();
  EXPECT_THAT(std::vector(y.begin(), y.begin() + 3), ElementsAre(-1, 0, 1));
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_THAT(runOne("Sign", {ints(UInt8, {0, 9})}).toInts(), ElementsAre(0, 1));
  EXPECT_THAT(runOne("Sign", {ints(Int8, {-9})}).toInts(), ElementsAre(-1));
}

TEST(Elementwise, RoundsNarrowFloatsOnce) {
  // 1 + 2^-11 lies in the middle between two f16 values; the least bit more decides.
  EXPECT_THAT(runOne("Add", {reals(Float16, {1, 1}), reals(Float16, {0x1p-11, 0x1.004p-11})}).doubles(),
              ElementsAre(1, 0x1.004p0));
  EXPECT_THAT(runOne("Mul", {reals(BFloat16, {1.0078125}), reals(BFloat16, {1.0078125})}).doubles(),
              ElementsAre(1.015625));
  EXPECT_THAT(runOne("Add", {reals(Float4E2M1, {1.5}), reals(Float4E2M1, {1})}).doubles(), ElementsAre(2));
}

TEST(Elementwise, WorksInPlace) {
  Tensor x = counted(Float32, {600});
  const Attrs attrs = attrsOf("Add");
  const Tensor one = f32({}, {1});
  const std::vector<TensorRef> in{x.ref(), one.ref()};
  const std::vector<TensorRef> out{x.ref()};
  ASSERT_TRUE(runReference({.attrs = attrs, .in = in, .out = out}).ok());
  for (size_t i = 0; i < 600; ++i) ASSERT_EQ(x.doubles()[i], static_cast<double>(i) + 1);
}

struct Function {
  const char* op;
  std::vector<double> x;
  double (*f)(double);
};

// The formulas are compositions; the C++ library knows most of the functions directly.
TEST(Elementwise, AgreesWithTheLibrary) {
  const std::vector<double> wide{-700, -20, -3.5, -1, -1e-9, 0, 1e-9, 0.3, 1, 2.5, 20, 700};
  const std::vector<double> unit{-1, -0.75, -1e-9, 0, 1e-9, 0.5, 1};
  const std::vector<double> open{-0.99, -0.75, -1e-9, 0, 1e-9, 0.5, 0.99};
  const std::vector<double> above{1, 1.5, 100, 1e10};
  const std::vector<double> mild{-20, -3.5, -1, -1e-9, 0, 1e-9, 0.3, 1, 2.5, 20};
  const std::vector<double> large{-1e200, -1e9, -3, -1e-9, 0, 1e-9, 0.5, 3, 1e9, 1e200};
  const std::vector<Function> functions{
      {"Floor", wide, std::floor},
      {"Ceil", wide, std::ceil},
      {"Sqrt", above, std::sqrt},
      {"Exp", wide, std::exp},
      {"Log", above, std::log},
      {"Sin", wide, std::sin},
      {"Cos", wide, std::cos},
      {"Tan", wide, std::tan},
      {"Asin", unit, std::asin},
      {"Acos", unit, std::acos},
      {"Atan", wide, std::atan},
      {"Sinh", wide, std::sinh},
      {"Cosh", wide, std::cosh},
      {"Tanh", wide, std::tanh},
      {"Asinh", large, std::asinh},
      {"Acosh", above, std::acosh},
      {"Atanh", open, std::atanh},
      {"Erf", wide, std::erf},
      {"Reciprocal", above, [](double x) { return 1 / x; }},
      {"Relu", wide, [](double x) { return x > 0 ? x : 0; }},
      {"LeakyRelu", wide, [](double x) { return x < 0 ? 0.01 * x : x; }},
      {"ThresholdedRelu", wide, [](double x) { return x > 1 ? x : 0; }},
      {"Elu", wide, [](double x) { return x < 0 ? std::expm1(x) : x; }},
      {"Celu", wide, [](double x) { return x < 0 ? std::expm1(x) : x; }},
      {"Sigmoid", wide, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"HardSigmoid", wide, [](double x) { return std::fmin(1, std::fmax(0, 0.2 * x + 0.5)); }},
      {"HardSwish", wide, [](double x) { return x * std::fmin(1, std::fmax(0, x / 6 + 0.5)); }},
      {"Swish", wide, [](double x) { return x / (1 + std::exp(-x)); }},
      {"Softplus", mild, [](double x) { return std::log1p(std::exp(x)); }},
      {"Softsign", wide, [](double x) { return x / (1 + std::fabs(x)); }},
      {"Mish", mild, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {"Shrink", wide, [](double x) { return std::fabs(x) <= 0.5 ? 0 : x; }},
      {"Gelu", mild, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
      {"Selu", mild,
       [](double x) { return 1.05070102214813232421875 * (x > 0 ? x : 1.67326319217681884765625 * std::expm1(x)); }},
  };
  for (const Function& function : functions) {
    const std::vector<double> y = runOne(function.op, {reals(Float64, function.x)}).doubles();
    for (size_t i = 0; i < y.size(); ++i) {
      const double expected = function.f(function.x[i]);
      EXPECT_NEAR(y[i], expected, 1e-13 * std::max(1e-3, std::fabs(expected)))
          << function.op << " of " << function.x[i];
    }
  }
}

TEST(Elementwise, GeluTanhIsCloseToGelu) {
  const Tensor x = reals(Float64, {-3, -1, 0, 1, 3});
  const std::vector<double> exact = runOne("Gelu", {x}).doubles();
  const std::vector<double> near = runOne("GeluTanh", {x}).doubles();
  for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(near[i], exact[i], 1e-3);
  EXPECT_NE(near[1], exact[1]);
}

TEST(Elementwise, ReadsAttributes) {
  const Tensor x = f32({2}, {-2, 2});
  EXPECT_THAT(runOne(attrsOf("LeakyRelu").set("alpha", 0.5), {x}).doubles(), ElementsAre(-1, 2));
  EXPECT_THAT(runOne(attrsOf("Shrink").set("bias", 1.0).set("lambd", 1.0), {x}).doubles(), ElementsAre(-1, 1));
  EXPECT_THAT(runOne("PRelu", {x, f32({2}, {3, 9})}).doubles(), ElementsAre(-6, 2));
}

}  // namespace
}  // namespace aglow
