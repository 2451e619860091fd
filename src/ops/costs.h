// What operators cost: arithmetic operations for each element of the first result, by types and attributes alone. A
// multiplication with an addition counts as two; padding counts as nothing. A record names its rule.
#pragma once

#include <span>

#include "tensor/type.h"

namespace aglow {

class Attrs;

struct CostContext {
  const Attrs& attrs;
  std::span<const Type* const> in;  // null where an optional operand is absent
  const Type& out;                  // the first result

  const Type& type(size_t i) const { return *in[i]; }
  bool has(size_t i) const { return i < in.size() && in[i] != nullptr; }
};
using CostRule = double(const CostContext&);

namespace cost {

CostRule nothing;  // elements are moved
CostRule once, twice;
CostRule matMul, conv, blockedConv, winogradConv, depthwiseConv, narrowConv, byteDepthwiseConv;
// The same, where operands lie otherwise.
CostRule transposedMatMul, tapProducts;
CostRule attention, recurrent, pool;
CostRule everyInput;  // each element of the first operand takes part once
CostRule observe;

}  // namespace cost

}  // namespace aglow
