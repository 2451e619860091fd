#include "codegen/nest/scalars.h"

#include <cstddef>

namespace aglow::nest {

namespace {

constexpr ScalarInfo kScalarTable[] = {
    {Scalar::Arg, "arg", 0, false},
    {Scalar::Attr, "attr", 0, false},
    {Scalar::Const, "const", 0, false},
    {Scalar::Add, "add", 2, false, "+"},
    {Scalar::Sub, "sub", 2, false, "-"},
    {Scalar::Mul, "mul", 2, false, "*"},
    {Scalar::Div, "div", 2, false, "/"},
    {Scalar::Rem, "rem", 2, false, "fmod"},
    {Scalar::Pow, "pow", 2, false, "pow"},
    {Scalar::Min, "min", 2, false},
    {Scalar::Max, "max", 2, false},
    {Scalar::Neg, "neg", 1, false, "-"},
    {Scalar::Abs, "abs", 1, false, "fabs"},
    {Scalar::Floor, "floor", 1, true, "floor"},
    {Scalar::Round, "round", 1, true, "rint"},
    {Scalar::Sqrt, "sqrt", 1, true, "sqrt"},
    {Scalar::Exp, "exp", 1, true, "exp"},
    {Scalar::Expm1, "expm1", 1, true, "expm1"},
    {Scalar::Log, "log", 1, true, "log"},
    {Scalar::Log1p, "log1p", 1, true, "log1p"},
    {Scalar::Sin, "sin", 1, true, "sin"},
    {Scalar::Cos, "cos", 1, true, "cos"},
    {Scalar::Atan, "atan", 1, true, "atan"},
    {Scalar::Tanh, "tanh", 1, true, "tanh"},
    {Scalar::Erf, "erf", 1, true, "erf"},
    {Scalar::And, "and", 2, false, "&", "&"},
    {Scalar::Or, "or", 2, false, "|", "|"},
    {Scalar::Xor, "xor", 2, false, "^", "^"},
    {Scalar::Not, "not", 1, false, "~", "~"},
    {Scalar::Shl, "shl", 2, false},
    {Scalar::Shr, "shr", 2, false},
    {Scalar::Eq, "eq", 2, false, "==", "=="},
    {Scalar::Lt, "lt", 2, false, "<", "<"},
    {Scalar::IsNan, "isnan", 1, true},
    {Scalar::Select, "select", 3, false},
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
