// The element kinds that ONNX's operators take, in groups, for records whose own kinds are more.
#pragma once

#include "tensor/elem_kind.h"

namespace aglow::onnx_kinds {

using enum ElemKind;

inline constexpr KindSet floats = kindSet(Float16, Float32, Float64, BFloat16);
inline constexpr KindSet float8s = kindSet(Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ);
inline constexpr KindSet signedInts = kindSet(Int8, Int16, Int32, Int64),
                         unsignedInts = kindSet(UInt8, UInt16, UInt32, UInt64), ints = signedInts | unsignedInts;
inline constexpr KindSet words = kindSet(Int32, Int64, UInt32, UInt64);
inline constexpr KindSet bytes = kindSet(Int8, UInt8);
inline constexpr KindSet numbers = floats | ints;
inline constexpr KindSet elements = numbers | kindSet(Bool);
inline constexpr KindSet moved = elements | float8s | kindSet(Float4E2M1, Float8E8M0, Int4, UInt4);
inline constexpr KindSet dequantized = float8s | kindSet(Int8, UInt8, Int16, UInt16, Int32, Int4, UInt4, Float4E2M1);

}  // namespace aglow::onnx_kinds
