// In which kinds formulas are computed, and how elements get there and back.
#pragma once

#include <span>
#include <vector>

#include "tensor/elem_kind.h"
#include "tensor/float_format.h"

namespace aglow::nest {

// The kind in which a value of this kind is computed: bool itself, f32 or f64 for floats, else an integer of 32 or 64
// bits with the kind's sign.
ElemKind computedKind(ElemKind kind);

// The narrowest kind in which operands of these kinds give what the reference kernels, which compute in 64 bits, give.
// Bools alone are numbers here, 0 and 1 of u32.
ElemKind commonKind(std::span<const ElemKind> kinds);

// The format of a float that is only stored; f8e8m0, which has powers of two alone, is not among them.
FloatFormat narrowFormat(ElemKind kind);

// Whether there is a conversion from one kind to the other in one step:
//   - of a kind that is only stored to its computed kind, exactly;
//   - f32 and f64 to each other and to narrower floats, rounded once, to nearest even;
//   - f32 and f64 to integers of 32 and 64 bits: towards zero, what does not fit saturates, NaN is 0;
//   - integers of 32 and 64 bits to f32 and f64, to nearest even;
//   - integers of 32 and 64 bits to any integer kind: wraps, or extends by the sign of the kind it comes from;
//   - bool to computed kinds: 0 or 1; from them: whether not 0.
bool converts(ElemKind from, ElemKind to);

// The steps from one kind to another, without the first. None to stay in a computed kind.
std::vector<ElemKind> conversion(ElemKind from, ElemKind to);

}  // namespace aglow::nest
