// The sets of element kinds that records speak of.
#pragma once

#include "tensor/elem_kind.h"

namespace aglow::kinds {

inline constexpr KindSet floats = kindSet(ElemKind::Float32, ElemKind::Float64, ElemKind::Float16, ElemKind::BFloat16,
                                          ElemKind::Float8E4M3FN, ElemKind::Float8E4M3FNUZ, ElemKind::Float8E5M2,
                                          ElemKind::Float8E5M2FNUZ, ElemKind::Float8E8M0, ElemKind::Float4E2M1);
inline constexpr KindSet signedInts =
    kindSet(ElemKind::Int2, ElemKind::Int4, ElemKind::Int8, ElemKind::Int16, ElemKind::Int32, ElemKind::Int64);
inline constexpr KindSet unsignedInts =
    kindSet(ElemKind::UInt2, ElemKind::UInt4, ElemKind::UInt8, ElemKind::UInt16, ElemKind::UInt32, ElemKind::UInt64);
inline constexpr KindSet ints = signedInts | unsignedInts;
inline constexpr KindSet numbers = floats | ints;
inline constexpr KindSet bools = kindSet(ElemKind::Bool);
inline constexpr KindSet plain = numbers | bools;
inline constexpr KindSet quantized = kindSet(ElemKind::QInt8, ElemKind::QUInt8, ElemKind::QInt16, ElemKind::QInt32);
inline constexpr KindSet any = plain | quantized;
inline constexpr KindSet indices = kindSet(ElemKind::Int32, ElemKind::Int64);

}  // namespace aglow::kinds
