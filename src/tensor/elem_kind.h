// The kinds of elements a tensor may hold, and what every stage needs to know of them, as one table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace aglow {

// Kinds narrower than a byte are stored one element a byte; see docs/adr/0003-narrow-types.md.
enum class ElemKind : uint8_t {
  Float32,
  Float64,
  Float16,
  BFloat16,
  Float8E4M3FN,
  Float8E4M3FNUZ,
  Float8E5M2,
  Float8E5M2FNUZ,
  Float8E8M0,
  Float4E2M1,
  Int2,
  Int4,
  Int8,
  Int16,
  Int32,
  Int64,
  UInt2,
  UInt4,
  UInt8,
  UInt16,
  UInt32,
  UInt64,
  Bool,
  // Quantized: real value = (stored - offset) * scale, with the parameters in the Type.
  QInt8,
  QUInt8,
  QInt16,
  QInt32,
};
inline constexpr int kElemKinds = static_cast<int>(ElemKind::QInt32) + 1;

enum class ElemClass : uint8_t { Float, Signed, Unsigned, Bool, Quantized };

struct ElemInfo {
  ElemKind kind;
  std::string_view name;  // in the text forms: "f32"
  ElemClass cls;
  uint8_t bits;          // of information
  uint8_t bytes;         // of storage
  std::string_view npy;  // numpy's type, or that of the raw bits: "<f4"
  uint8_t onnx;          // TensorProto.DataType, 0 where ONNX has none
};

const ElemInfo& elemInfo(ElemKind kind);
inline int elemBytes(ElemKind kind) { return elemInfo(kind).bytes; }
inline std::string_view elemName(ElemKind kind) { return elemInfo(kind).name; }
std::optional<ElemKind> elemKindByName(std::string_view name);
std::optional<ElemKind> elemKindByOnnx(int dataType);

inline bool isFloat(ElemKind k) { return elemInfo(k).cls == ElemClass::Float; }
inline bool isSigned(ElemKind k) { return elemInfo(k).cls == ElemClass::Signed; }
inline bool isUnsigned(ElemKind k) { return elemInfo(k).cls == ElemClass::Unsigned; }
inline bool isInteger(ElemKind k) { return isSigned(k) || isUnsigned(k); }
inline bool isQuantized(ElemKind k) { return elemInfo(k).cls == ElemClass::Quantized; }
// The plain integer kind with the same bits as a quantized one; any other kind is its own storage.
ElemKind storageKind(ElemKind kind);

// Sets of kinds, as operator records name them.
using KindSet = uint32_t;
constexpr KindSet kindSet() { return 0; }
template <class... Rest>
constexpr KindSet kindSet(ElemKind first, Rest... rest) {
  return (KindSet{1} << static_cast<int>(first)) | kindSet(rest...);
}
constexpr bool contains(KindSet set, ElemKind kind) { return (set >> static_cast<int>(kind)) & 1; }

}  // namespace aglow
