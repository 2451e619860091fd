// Elementwise operators: arithmetic, comparison, logic and mathematical functions. One formula is the whole definition.
#pragma once

#include "ops/kind_sets.h"
#include "ops/onnx_kinds.h"
#include "ops/op_def.h"
#include "ops/type_rules.h"

namespace aglow::records {

using namespace aglow::formula;  // NOLINT: the records' own language

inline constexpr double kInfinity = __builtin_inf();

consteval OpDef unary(std::string_view name, std::string_view doc, KindSet kinds, Formula scalar) {
  return {.name = name,
          .doc = doc,
          .kind = OpKind::Elementwise,
          .in = {{"x", kinds, 'T'}},
          .infer = infer::broadcast,
          .scalar = scalar,
          .onnx = name,
          .inPlace = true};
}

consteval OpDef binary(std::string_view name, std::string_view doc, KindSet kinds, Formula scalar) {
  OpDef def = unary(name, doc, kinds, scalar);
  def.in = {{"a", kinds, 'T'}, {"b", kinds, 'T'}};
  return def;
}

// A result of kind bool.
consteval OpDef predicate(OpDef def) {
  def.infer = infer::broadcastToBool;
  return def;
}

consteval OpDef drawnFrom(double low, double high, OpDef def) {
  def.probe = {low, high};
  return def;
}

consteval OpDef onnxName(std::string_view name, OpDef def) {
  def.onnx = name;
  return def;
}

consteval OpDef standard(StandardForm form, OpDef def) {
  def.standard = form;
  return def;
}

// A function with f(-x) = -f(x), from its formula for |x|; zeros keep their sign.
consteval Formula odd(const Formula& ofMagnitude) { return select(x == 0, x, select(x < 0, -1, 1) * ofMagnitude); }

// exp(|x|) leaves the range before its half does. Above 64 it is taken 64 lower, which is exact, and half of exp(64) is
// multiplied in last.
inline constexpr Formula kIsHigh = 64 < abs(x);
inline constexpr Formula kLowered = abs(x) - select(kIsHigh, 64, 0);
inline constexpr double kHalfExp64 = 0x1.425982cf597cdp+91;

// log(2 a) without 2 a, which may leave the range.
consteval Formula logOfTwice(const Formula& a) { return log(a) + 0.69314718055994530942; }

inline constexpr OpDef kElementwise[] = {
    binary("Add", "a + b; integers wrap.", kinds::numbers, x + y),
    binary("Sub", "a - b; integers wrap.", kinds::numbers, x - y),
    binary("Mul", "a * b; integers wrap.", kinds::numbers, x* y),
    binary("Div", "a / b; integers truncate towards zero, and division of an integer by zero gives zero.",
           kinds::numbers, x / y),
    onnxName("", standard({"Mod", onnx_kinds::ints},
                          binary("Mod", "Remainder with the sign of the divisor.", kinds::numbers,
                                 select((rem(x, y) == 0) | ((rem(x, y) < 0) == (y < 0)), rem(x, y), rem(x, y) + y)))),
    onnxName("", standard({"Mod", onnx_kinds::numbers, "remainder"},
                          binary("Rem", "Remainder with the sign of the dividend, as C's fmod.", kinds::numbers,
                                 rem(x, y)))),
    {.name = "Pow",
     .doc = "a to the power of b, of a's element kind.",
     .kind = OpKind::Elementwise,
     .in = {{"a", kinds::numbers, 'T'}, {"b", kinds::numbers}},
     .infer = infer::broadcast,
     .scalar = pow(x, y),
     .onnx = "Pow",
     .standard = {"Pow", onnx_kinds::floats | kinds::indices},
     .inPlace = true,
     .probe = {0.1, 4}},
    onnxName("", standard({"Min", onnx_kinds::numbers},
                          binary("Min", "The smaller of both; NaN wins.", kinds::numbers, min(x, y)))),
    onnxName("", standard({"Max", onnx_kinds::numbers},
                          binary("Max", "The larger of both; NaN wins.", kinds::numbers, max(x, y)))),
    standard({"Neg", onnx_kinds::floats | onnx_kinds::signedInts}, unary("Neg", "-x.", kinds::numbers, -x)),
    unary("Abs", "|x|.", kinds::numbers, abs(x)),
    unary("Sign", "-1, 0 or 1; NaN stays.", kinds::numbers, select(x < 0, -1, select(0 < x, 1, x))),
    unary("Floor", "Rounds towards minus infinity.", kinds::floats, floor(x)),
    unary("Ceil", "Rounds towards plus infinity.", kinds::floats, -floor(-x)),
    unary("Round", "Rounds to the nearest integer, halves to even.", kinds::floats, round(x)),
    unary("Reciprocal", "1 / x.", kinds::floats, 1 / x),
    drawnFrom(0, 9, unary("Sqrt", "Square root.", kinds::floats, sqrt(x))),
    unary("Exp", "e to the power of x.", kinds::floats, exp(x)),
    onnxName("", unary("Expm1", "exp(x) - 1, exact for small x.", kinds::floats, expm1(x))),
    drawnFrom(0.1, 9, unary("Log", "Natural logarithm.", kinds::floats, log(x))),
    drawnFrom(-0.9, 9, onnxName("", unary("Log1p", "log(1 + x), exact for small x.", kinds::floats, log1p(x)))),
    unary("Sin", "Sine.", kinds::floats, sin(x)),
    unary("Cos", "Cosine.", kinds::floats, cos(x)),
    unary("Tan", "Tangent.", kinds::floats, sin(x) / cos(x)),
    drawnFrom(-1, 1, unary("Asin", "Inverse sine.", kinds::floats, atan(x / sqrt((1 - x) * (1 + x))))),
    drawnFrom(-1, 1, unary("Acos", "Inverse cosine.", kinds::floats, 2 * atan(sqrt((1 - x) / (1 + x))))),
    unary("Atan", "Inverse tangent.", kinds::floats, atan(x)),
    unary("Sinh", "Hyperbolic sine.", kinds::floats,
          odd(select(kIsHigh, (expm1(kLowered) + 1) * kHalfExp64,
                     0.5 * (expm1(kLowered) + expm1(kLowered) / (expm1(kLowered) + 1))))),
    unary("Cosh", "Hyperbolic cosine.", kinds::floats,
          select(kIsHigh, exp(kLowered) * kHalfExp64, 0.5 * (exp(kLowered) + 1 / exp(kLowered)))),
    unary("Tanh", "Hyperbolic tangent.", kinds::floats, tanh(x)),
    unary("Asinh", "Inverse hyperbolic sine.", kinds::floats,
          odd(select(1e8 < abs(x), logOfTwice(abs(x)), log1p(abs(x) + x * x / (1 + sqrt(x * x + 1)))))),
    drawnFrom(1, 9,
              unary("Acosh", "Inverse hyperbolic cosine.", kinds::floats,
                    select(1e8 < x, logOfTwice(x), log1p((x - 1) + sqrt(x - 1) * sqrt(x + 1))))),
    drawnFrom(
        -0.9,
        0.9, unary("Atanh", "Inverse hyperbolic tangent.", kinds::floats, odd(0.5 * log1p(2 * abs(x) / (1 - abs(x)))))),
    unary("Erf", "Gauss error function.", kinds::floats, erf(x)),

    predicate(binary("Equal", "a == b.", kinds::plain, x == y)),
    predicate(binary("Less", "a < b.", kinds::numbers, x < y)),
    predicate(binary("LessOrEqual", "a <= b.", kinds::numbers, x <= y)),
    predicate(onnxName("IsNaN", standard({"IsNaN", onnx_kinds::floats | onnx_kinds::float8s},
                                         unary("IsNan", "Whether x is not a number.", kinds::floats, isNan(x))))),
    {.name = "IsInf",
     .doc = "Whether x is infinite, of the signs asked for.",
     .kind = OpKind::Elementwise,
     .in = {{"x", kinds::floats, 'T'}},
     .attrs = {{"detect_negative", AttrKind::Bool, 1}, {"detect_positive", AttrKind::Bool, 1}},
     .infer = infer::broadcastToBool,
     .scalar = ((x == kInfinity) & attr("detect_positive")) | ((x == -kInfinity) & attr("detect_negative")),
     .onnx = "IsInf",
     .standard = {"IsInf", onnx_kinds::floats | onnx_kinds::float8s}},
    predicate(binary("And", "Both are true.", kinds::bools, x& y)),
    predicate(binary("Or", "One is true.", kinds::bools, x | y)),
    predicate(binary("Xor", "Exactly one is true.", kinds::bools, x ^ y)),
    predicate(unary("Not", "Whether x is false.", kinds::bools, x == 0)),
    onnxName("BitwiseAnd", binary("BitAnd", "Bits set in both.", kinds::ints, x& y)),
    onnxName("BitwiseOr", binary("BitOr", "Bits set in one.", kinds::ints, x | y)),
    onnxName("BitwiseXor", binary("BitXor", "Bits that differ.", kinds::ints, x ^ y)),
    onnxName("BitwiseNot", unary("BitNot", "All bits flipped.", kinds::ints, ~x)),
    drawnFrom(
        0, 7,
        onnxName("", standard({"BitShift", onnx_kinds::unsignedInts, "shiftLeft"},
                              binary("ShiftLeft", "a shifted by b bits to the left.", kinds::unsignedInts, x << y)))),
    drawnFrom(
        0, 7,
        onnxName("", standard({"BitShift", onnx_kinds::unsignedInts, "shiftRight"},
                              binary("ShiftRight", "a shifted by b bits to the right.", kinds::unsignedInts, x >> y)))),
    {.name = "Where",
     .doc = "a where the condition is true, b elsewhere.",
     .kind = OpKind::Elementwise,
     .in = {{"condition", kinds::bools}, {"a", kinds::plain, 'T'}, {"b", kinds::plain, 'T'}},
     .infer = infer::broadcast,
     .scalar = select(x, y, z),
     .onnx = "Where"},
    {.name = "Clip",
     .doc = "x held between low and high; high wins where they cross.",
     .kind = OpKind::Elementwise,
     .in = {{"x", kinds::numbers, 'T'}, {"low", kinds::numbers, 'T'}, {"high", kinds::numbers, 'T'}},
     .infer = infer::broadcast,
     .scalar = min(max(x, y), z),
     .standard = {"Clip", onnx_kinds::numbers, "clip"},
     .inPlace = true},
    {.name = "Expand",
     .doc = "x repeated to fill a larger shape.",
     .kind = OpKind::Elementwise,
     .in = {{"x", kinds::plain, 'T'}},
     .attrs = {{.name = "shape", .kind = AttrKind::Ints, .doc = "the result's shape; x must broadcast to it"}},
     .infer = infer::expand,
     .scalar = x,
     .standard = {"Expand", onnx_kinds::elements, "withShape"}},
};

}  // namespace aglow::records
