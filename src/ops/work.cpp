#include "ops/work.h"

#include <algorithm>

#include "ops/op_def.h"

namespace aglow {

double flopsOf(const Attrs& attrs, std::span<const Type* const> in, const Type& out) {
  const OpDef& op = attrs.op();
  double each = 0;
  if (op.kind == OpKind::Elementwise)
    each = static_cast<double>(
        std::count_if(op.scalar.begin(), op.scalar.end(), [](const Term& t) { return t.op > Scalar::Const; }));
  else if (op.cost != nullptr)
    each = op.cost({.attrs = attrs, .in = in, .out = out});
  return each * static_cast<double>(out.elements());
}

double roughTime(double flops, double bytes) {
  constexpr double kFlops = 5e4, kBytes = 1e4;  // in a microsecond
  return flops / kFlops + bytes / kBytes;
}

}  // namespace aglow
