#include "codegen/nest/scalars.h"

#include <cstddef>

namespace aglow::nest {

namespace {

constexpr ScalarInfo kScalarTable[] = {
    {Scalar::Arg, "arg", 0, false},    {Scalar::Attr, "attr", 0, false},     {Scalar::Const, "const", 0, false},
    {Scalar::Add, "add", 2, false},    {Scalar::Sub, "sub", 2, false},       {Scalar::Mul, "mul", 2, false},
    {Scalar::Div, "div", 2, false},    {Scalar::Rem, "rem", 2, false},       {Scalar::Pow, "pow", 2, false},
    {Scalar::Min, "min", 2, false},    {Scalar::Max, "max", 2, false},       {Scalar::Neg, "neg", 1, false},
    {Scalar::Abs, "abs", 1, false},    {Scalar::Floor, "floor", 1, true},    {Scalar::Round, "round", 1, true},
    {Scalar::Sqrt, "sqrt", 1, true},   {Scalar::Exp, "exp", 1, true},        {Scalar::Expm1, "expm1", 1, true},
    {Scalar::Log, "log", 1, true},     {Scalar::Log1p, "log1p", 1, true},    {Scalar::Sin, "sin", 1, true},
    {Scalar::Cos, "cos", 1, true},     {Scalar::Atan, "atan", 1, true},      {Scalar::Tanh, "tanh", 1, true},
    {Scalar::Erf, "erf", 1, true},     {Scalar::And, "and", 2, false},       {Scalar::Or, "or", 2, false},
    {Scalar::Xor, "xor", 2, false},    {Scalar::Not, "not", 1, false},       {Scalar::Shl, "shl", 2, false},
    {Scalar::Shr, "shr", 2, false},    {Scalar::Eq, "eq", 2, false},         {Scalar::Lt, "lt", 2, false},
    {Scalar::IsNan, "isnan", 1, true}, {Scalar::Select, "select", 3, false},
};

constexpr bool inOrder() {
  for (size_t i = 0; i < std::size(kScalarTable); ++i)
    if (kScalarTable[i].scalar != static_cast<Scalar>(i)) return false;
  return std::size(kScalarTable) == static_cast<size_t>(kScalars);
}
static_assert(inOrder(), "a row for each primitive, in the order of the enumeration");

}  // namespace

const ScalarInfo& scalarInfo(Scalar scalar) { return kScalarTable[static_cast<size_t>(scalar)]; }

}  // namespace aglow::nest
