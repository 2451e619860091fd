// Numbers as text and back, as the standard's Cast has it.
#pragma once

#include "tensor/string_tensor.h"
#include "tensor/tensor.h"

namespace aglow::strings {

// Whole numbers exactly, others with the fewest digits that tell them from the rest of their kind, never with an
// exponent; "INF", "-INF" and "NaN"; truth values are "1" and "0".
StringTensor textOf(const Tensor& numbers);
// Plain and scientific notation, blanks around it, infinities and NaN in any case. Int64, UInt64, Float32 and Float64;
// whole numbers are cut off after the point. RuntimeValue when a string is not a number or lies outside of the kind.
Result<Tensor> numbersOf(const StringTensor& strings, ElemKind kind);

}  // namespace aglow::strings
