// The table of element kinds.
#include "tensor/elem_kind.h"

#include <array>
#include <bit>

#include "support/check.h"

namespace aglow {

static_assert(std::endian::native == std::endian::little, "tensors are stored little endian");

namespace {

using enum ElemKind;
using Class = ElemClass;

constexpr std::array<ElemInfo, kElemKinds> kTable = {{
    {Float32, "f32", Class::Float, 32, 4, "<f4", 1},
    {Float64, "f64", Class::Float, 64, 8, "<f8", 11},
    {Float16, "f16", Class::Float, 16, 2, "<f2", 10},
    {BFloat16, "bf16", Class::Float, 16, 2, "<u2", 16},
    {Float8E4M3FN, "f8e4m3fn", Class::Float, 8, 1, "|u1", 17},
    {Float8E4M3FNUZ, "f8e4m3fnuz", Class::Float, 8, 1, "|u1", 18},
    {Float8E5M2, "f8e5m2", Class::Float, 8, 1, "|u1", 19},
    {Float8E5M2FNUZ, "f8e5m2fnuz", Class::Float, 8, 1, "|u1", 20},
    {Float8E8M0, "f8e8m0", Class::Float, 8, 1, "|u1", 24},
    {Float4E2M1, "f4e2m1", Class::Float, 4, 1, "|u1", 23},
    {Int2, "i2", Class::Signed, 2, 1, "|i1", 26},
    {Int4, "i4", Class::Signed, 4, 1, "|i1", 22},
    {Int8, "i8", Class::Signed, 8, 1, "|i1", 3},
    {Int16, "i16", Class::Signed, 16, 2, "<i2", 5},
    {Int32, "i32", Class::Signed, 32, 4, "<i4", 6},
    {Int64, "i64", Class::Signed, 64, 8, "<i8", 7},
    {UInt2, "u2", Class::Unsigned, 2, 1, "|u1", 25},
    {UInt4, "u4", Class::Unsigned, 4, 1, "|u1", 21},
    {UInt8, "u8", Class::Unsigned, 8, 1, "|u1", 2},
    {UInt16, "u16", Class::Unsigned, 16, 2, "<u2", 4},
    {UInt32, "u32", Class::Unsigned, 32, 4, "<u4", 12},
    {UInt64, "u64", Class::Unsigned, 64, 8, "<u8", 13},
    {Bool, "bool", Class::Bool, 1, 1, "|b1", 9},
    {QInt8, "qi8", Class::Quantized, 8, 1, "|i1", 0},
    {QUInt8, "qu8", Class::Quantized, 8, 1, "|u1", 0},
    {QInt16, "qi16", Class::Quantized, 16, 2, "<i2", 0},
    {QInt32, "qi32", Class::Quantized, 32, 4, "<i4", 0},
}};

constexpr bool inOrder() {
  for (int i = 0; i < kElemKinds; ++i)
    if (kTable[static_cast<size_t>(i)].kind != static_cast<ElemKind>(i)) return false;
  return true;
}
static_assert(inOrder(), "a kind is the index of its row");

}  // namespace

const ElemInfo& elemInfo(ElemKind kind) {
  const auto index = static_cast<size_t>(kind);
  AGLOW_CHECK(index < kTable.size(), "no such element kind");
  return kTable[index];
}

std::optional<ElemKind> elemKindByName(std::string_view name) {
  for (const ElemInfo& info : kTable)
    if (info.name == name) return info.kind;
  return std::nullopt;
}

std::optional<ElemKind> elemKindByOnnx(int dataType) {
  for (const ElemInfo& info : kTable)
    if (info.onnx != 0 && info.onnx == dataType) return info.kind;
  return std::nullopt;
}

ElemKind storageKind(ElemKind kind) {
  switch (kind) {
    case QInt8:
      return Int8;
    case QUInt8:
      return UInt8;
    case QInt16:
      return Int16;
    case QInt32:
      return Int32;
    default:
      return kind;
  }
}

}  // namespace aglow
