// Whether an operator's results change little where its operands do.
#pragma once

#include <algorithm>

#include "ops/op.h"

namespace aglow {

// False for what jumps, as floor does, and for what has no derivative at all.
inline bool isSteady(Op op) {
  constexpr Op kJumps[] = {Op::Floor, Op::Ceil, Op::Round, Op::Sign, Op::Mod};
  const GradientBy gradient = opDef(op).gradientBy();
  return (gradient == GradientBy::Formula || gradient == GradientBy::Rule) &&
         std::find(std::begin(kJumps), std::end(kJumps), op) == std::end(kJumps);
}

}  // namespace aglow
