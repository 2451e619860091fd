// In which kind a composite computes: every core result is rounded to its kind, so chains of narrow floats would lose
// what one fused operator keeps.
#pragma once

#include "graph/builder.h"

namespace aglow::lowering {

constexpr bool narrowerThanF32(ElemKind kind) { return kind != ElemKind::Float32 && kind != ElemKind::Float64; }

// f32 for floats narrower than it.
inline ElemKind wideKind(ElemKind kind) { return isFloat(kind) && narrowerThanF32(kind) ? ElemKind::Float32 : kind; }
inline Value widened(Builder& b, Value x) { return b.casted(x, wideKind(x.kind())); }

}  // namespace aglow::lowering
