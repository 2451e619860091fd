#include "backends/cpu/layout/bytes.h"

#include <algorithm>

#include "optimize/building.h"

namespace aglow {

namespace {

bool isByteKind(ElemKind kind) { return kind == ElemKind::UInt8 || kind == ElemKind::Int8; }

// What a value is a view of.
Value viewed(Value v) {
  while (!v.node->isStorage() && v.node->op() == Op::Reshape && !v.node->predicate()) v = v.node->input(0);
  return v;
}

bool isMove(Value v) {
  return !v.node->isStorage() && !v.node->predicate() && (v.node->op() == Op::Reshape || v.node->op() == Op::Transpose);
}

bool isWidenedByte(Value v) {
  return !v.node->isStorage() && v.node->op() == Op::Cast && !v.node->predicate() && v.kind() == ElemKind::Int32 &&
         isByteKind(v.node->input(0).kind());
}

}  // namespace

std::optional<int64_t> ShiftedBytes::known() const {
  if (!shift) return 0;
  const Constant* constant = asConstant(shift);
  if (constant == nullptr) return std::nullopt;
  const int64_t value = constant->tensor().toInts().front();
  return negative ? -value : value;
}

std::optional<ShiftedBytes> shiftedBytes(Value v) {
  v = viewed(v);
  if (isWidenedByte(v)) return ShiftedBytes{.bytes = v.node->input(0)};
  if (v.kind() != ElemKind::Int32 || v.node->isStorage() || v.node->predicate()) return std::nullopt;
  const bool minus = v.node->op() == Op::Sub;
  if (v.node->op() != Op::Add && !minus) return std::nullopt;
  Value wide = v.node->input(0), shift = v.node->input(1);
  if (!minus && wide.type().elements() == 1) std::swap(wide, shift);
  if (shift.type().elements() != 1 || wide.shape() != v.shape()) return std::nullopt;
  wide = viewed(wide);
  if (!isWidenedByte(wide)) return std::nullopt;
  return ShiftedBytes{.bytes = wide.node->input(0), .shift = shift, .negative = minus};
}

Value unmoved(Value v) {
  while (isMove(v)) v = v.node->input(0);
  return v;
}

Value movedAs(Builder& b, Value v, Value other) {
  if (!isMove(v)) return b.reshaped(other, v.shape().dims());
  return like(b, *v.node, {movedAs(b, v.node->input(0), other)});
}

bool fitsSignedBytes(const Tensor& i32) {
  const auto* values = i32.ref().as<const int32_t>();
  return std::all_of(values, values + i32.type().elements(),
                     [](int32_t value) { return value >= INT8_MIN && value <= INT8_MAX; });
}

bool isNarrowFloats(Value v) {
  if (v.kind() != ElemKind::Float32 || v.node->isStorage() || v.node->predicate()) return false;
  const Op op = v.node->op();
  if (op == Op::Cast) return v.node->input(0).kind() == ElemKind::BFloat16;
  return (op == Op::Reshape || op == Op::Transpose) && isNarrowFloats(v.node->input(0));
}

Value narrowFloats(Builder& b, Value v) {
  const Value from = v.node->input(0);
  if (v.node->op() == Op::Cast) return from;
  return like(b, *v.node, {narrowFloats(b, from)});
}

bool fitsHalves(const Tensor& f32) {
  constexpr uint32_t kLower = 0xFFFF;
  const auto* bits = f32.ref().as<const uint32_t>();
  return std::all_of(bits, bits + f32.type().elements(), [](uint32_t value) { return (value & kLower) == 0; });
}

Value unsignedBytes(Builder& b, Value bytes) {
  if (bytes.kind() == ElemKind::UInt8) return bytes;
  const Value wide = b.casted(bytes, ElemKind::Int32);
  return b.casted(b.add(wide, b.scalar(ElemKind::Int32, double{kSignedShift})), ElemKind::UInt8);
}

}  // namespace aglow
