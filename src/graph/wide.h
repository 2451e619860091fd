// In which kind chains of operators compute: every result is rounded to its kind, so narrow floats would lose what one
// fused operator keeps.
#pragma once

#include "graph/builder.h"

namespace aglow {

// f32 for floats narrower than it.
inline ElemKind wideKind(ElemKind kind) {
  return isFloat(kind) && kind != ElemKind::Float64 ? ElemKind::Float32 : kind;
}
inline Value widened(Builder& b, Value x) { return b.casted(x, wideKind(x.kind())); }

}  // namespace aglow
