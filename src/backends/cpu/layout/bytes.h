// Products whose operands hold less than their kind can: i32 that are bytes and a shift, which is added to all of them,
// and f32 that are bf16.
#pragma once

#include <optional>

#include "backends/cpu/kernels/plan.h"
#include "graph/builder.h"
#include "support/decision.h"

namespace aglow {

// An i32 value that is bytes + shift: an unsigned or signed kind of bytes, and one i32 or nothing.
struct ShiftedBytes {
  Value bytes;  // as many as the value has elements, in their order; maybe of another shape
  Value shift;
  bool negative = false;  // bytes - shift

  // The shift where it is known.
  std::optional<int64_t> known() const;
};
std::optional<ShiftedBytes> shiftedBytes(Value v);

// What a value is without the moves that come last, Reshape and Transpose; and another one of that shape, moved as it.
Value unmoved(Value v);
Value movedAs(Builder& b, Value v, Value other);

// Whether kernels of bytes compute a convolution, product or attention in floats; if not, why not.
Decision multipliesBytes(const Node& product, const cpu::Machine& machine);

// Whether all elements are from -128 to 127.
bool fitsSignedBytes(const Tensor& i32);

// Whether an f32 value is bf16 that are widened, and maybe moved after that; and the bf16, moved the same way.
bool isNarrowFloats(Value v);
Value narrowFloats(Builder& b, Value v);
// Whether all elements are bf16.
bool fitsHalves(const Tensor& f32);

// Kernels read unsigned bytes. Signed ones are shifted by this.
inline constexpr int64_t kSignedShift = 128;
Value unsignedBytes(Builder& b, Value bytes);

}  // namespace aglow
