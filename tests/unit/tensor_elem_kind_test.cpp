// The table of element kinds: names, codes and sizes that files and text forms rely on.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tensor/elem_kind.h"

namespace aglow {
namespace {

TEST(ElemKind, NamesAreUniqueAndFindTheirKind) {
  std::set<std::string_view> names;
  for (int i = 0; i < kElemKinds; ++i) {
    const auto kind = static_cast<ElemKind>(i);
    EXPECT_TRUE(names.insert(elemName(kind)).second) << elemName(kind);
    EXPECT_EQ(elemKindByName(elemName(kind)), kind);
  }
  EXPECT_EQ(elemKindByName("f33"), std::nullopt);
  EXPECT_EQ(elemKindByName(""), std::nullopt);
}

TEST(ElemKind, OnnxCodesAreThoseOfTensorProto) {
  const std::pair<int, const char*> codes[] = {
      {1, "f32"},   {2, "u8"},        {3, "i8"},          {4, "u16"},     {5, "i16"},         {6, "i32"},
      {7, "i64"},   {9, "bool"},      {10, "f16"},        {11, "f64"},    {12, "u32"},        {13, "u64"},
      {16, "bf16"}, {17, "f8e4m3fn"}, {18, "f8e4m3fnuz"}, {19, "f8e5m2"}, {20, "f8e5m2fnuz"}, {21, "u4"},
      {22, "i4"},   {23, "f4e2m1"},   {24, "f8e8m0"},     {25, "u2"},     {26, "i2"},
  };
  for (const auto& [code, name] : codes) EXPECT_EQ(elemKindByOnnx(code), elemKindByName(name)) << code;
  for (const int code : {-1, 0, 8, 14, 15, 27, 300}) EXPECT_EQ(elemKindByOnnx(code), std::nullopt) << code;
}

TEST(ElemKind, StorageMatchesTheNumpyType) {
  for (int i = 0; i < kElemKinds; ++i) {
    const ElemInfo& info = elemInfo(static_cast<ElemKind>(i));
    EXPECT_EQ(info.npy.substr(2), std::to_string(info.bytes)) << info.name;
    EXPECT_EQ(info.npy[0], info.bytes == 1 ? '|' : '<') << info.name;
    EXPECT_LE(info.bits, 8 * info.bytes) << info.name;
  }
  EXPECT_EQ(elemInfo(ElemKind::BFloat16).npy, "<u2");
  EXPECT_EQ(elemInfo(ElemKind::Float4E2M1).npy, "|u1");
  EXPECT_EQ(elemInfo(ElemKind::Int4).npy, "|i1");
}

TEST(ElemKind, QuantizedKindsHavePlainStorage) {
  EXPECT_EQ(storageKind(ElemKind::QInt8), ElemKind::Int8);
  EXPECT_EQ(storageKind(ElemKind::QUInt8), ElemKind::UInt8);
  EXPECT_EQ(storageKind(ElemKind::QInt16), ElemKind::Int16);
  EXPECT_EQ(storageKind(ElemKind::QInt32), ElemKind::Int32);
  EXPECT_EQ(storageKind(ElemKind::Float16), ElemKind::Float16);
}

TEST(ElemKind, SetsHoldWhatTheyName) {
  constexpr KindSet set = kindSet(ElemKind::Float32, ElemKind::QInt32);
  static_assert(contains(set, ElemKind::Float32) && contains(set, ElemKind::QInt32));
  EXPECT_FALSE(contains(set, ElemKind::Float64));
  EXPECT_FALSE(contains(kindSet(), ElemKind::Float32));
}

}  // namespace
}  // namespace aglow
