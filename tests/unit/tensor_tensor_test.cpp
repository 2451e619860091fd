// Tensors: whose bytes they hold, and their values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tensor/tensor.h"

namespace aglow {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST(Tensor, StartsAlignedAndZeroed) {
  for (const int64_t n : {0, 1, 17, 1000}) {
    const Tensor t(Type(ElemKind::Float32, {n}));
    EXPECT_FALSE(t.empty());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % Tensor::kAlignment, 0u);
    EXPECT_EQ(t.bytes(), 4 * n);
    EXPECT_THAT(t.doubles(), Each(0.0));
  }
  EXPECT_TRUE(Tensor().empty());
}

TEST(Tensor, HoldsValuesOfEveryKind) {
  for (int i = 0; i < kElemKinds; ++i) {
    const auto kind = static_cast<ElemKind>(i);
    // 1 is the only value that all kinds share: the scale format has no 0, and Int2 ends there.
    const Tensor t = Tensor::of<double>(Type(kind, {3}), {1, 1, 1});
    EXPECT_THAT(t.doubles(), Each(1.0)) << elemName(kind);
    EXPECT_THAT(t.toInts(), Each(1)) << elemName(kind);
    EXPECT_EQ(t, Tensor::of<int>(Type(kind, {3}), {1, 1, 1})) << elemName(kind);
  }
  EXPECT_THAT(Tensor::of<float>(Type(ElemKind::Int4, {3}), {-8, 7, 3.9f}).toInts(), ElementsAre(-8, 7, 3));
  EXPECT_THAT(Tensor::ints({4, -1}).toInts(), ElementsAre(4, -1));
  EXPECT_EQ(Tensor::ints({4, -1}).type().text(), "i64[2]");
  EXPECT_EQ(Tensor::scalar(ElemKind::Float16, 0.5).type().text(), "f16[]");
  EXPECT_THROW(Tensor::fromDoubles(Type(ElemKind::Float32, {2}), {1}), InternalError);
}

TEST(Tensor, CopiesShareBytesAndThenRefuseWriting) {
  Tensor t = Tensor::ints({1, 2, 3});
  t.mutableData()[0] = std::byte{9};
  {
    const Tensor copy = t;
    EXPECT_EQ(copy.data(), t.data());
    EXPECT_THROW(t.mutableData(), InternalError);
  }
  EXPECT_EQ(t.mutableData(), t.data());
  const Tensor moved = std::move(t);
  EXPECT_THAT(moved.toInts(), ElementsAre(9, 2, 3));
  EXPECT_TRUE(t.empty());  // NOLINT(bugprone-use-after-move)
}

TEST(Tensor, KeepsTheOwnerOfForeignBytes) {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2});
  const std::weak_ptr<std::vector<float>> watch = owner;
  const auto* data = reinterpret_cast<const std::byte*>(owner->data());
  {
    Tensor t(Type(ElemKind::Float32, {2}), data, std::move(owner));
    EXPECT_EQ(t.data(), data);
    EXPECT_THAT(t.doubles(), ElementsAre(1, 2));
    EXPECT_THROW(t.mutableData(), InternalError);
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(Tensor, CopiesForeignBytesThatAreNotAligned) {
  auto owner = std::make_shared<std::vector<std::byte>>(17);
  std::byte* data = owner->data() + 1;
  const double values[] = {1.5, -2};
  std::memcpy(data, values, sizeof(values));
  const Tensor t(Type(ElemKind::Float64, {2}), data, owner);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % sizeof(double), 0u);
  EXPECT_THAT(t.doubles(), ElementsAre(1.5, -2));
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_FALSE(Tensor(Type(ElemKind::Float32, {0}), nullptr, nullptr).empty());
  EXPECT_THROW(Tensor(Type(ElemKind::Float32, {1}), nullptr, nullptr), InternalError);
}

TEST(Tensor, IsSeenWithAnotherType) {
  const Tensor t = Tensor::of<int>(Type(ElemKind::Int32, {2, 3}), {1, 2, 3, 4, 5, 6});
  const Tensor flat = t.retyped(Type(ElemKind::Int32, {6}));
  EXPECT_EQ(flat.data(), t.data());
  EXPECT_THAT(flat.toInts(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(t.retyped(Type(ElemKind::Float32, {3, 2})).type().text(), "f32[3,2]");
  EXPECT_THROW(t.retyped(Type(ElemKind::Int32, {5})), InternalError);
}

TEST(Tensor, FindsSplatsByBits) {
  const auto splat = [](ElemKind kind, std::vector<double> values) {
    return Tensor::fromDoubles(Type(kind, {static_cast<int64_t>(values.size())}), values).isSplat();
  };
  EXPECT_TRUE(splat(ElemKind::Float32, {7, 7, 7}));
  EXPECT_TRUE(splat(ElemKind::Int8, {7}));
  EXPECT_FALSE(splat(ElemKind::Float32, {7, 7, 6}));
  EXPECT_FALSE(splat(ElemKind::Float32, {0.0, -0.0}));
  EXPECT_FALSE(splat(ElemKind::Float64, {}));
  EXPECT_FALSE(Tensor().isSplat());
  // Bytes that repeat with another period than the element's do not count.
  EXPECT_FALSE(splat(ElemKind::Int16, {256, 1}));
}

TEST(Tensor, HashFollowsTypeAndBytes) {
  const Tensor t = Tensor::ints({1, 2, 3});
  EXPECT_EQ(t.hash(), Tensor::ints({1, 2, 3}).hash());
  EXPECT_NE(t.hash(), Tensor::ints({1, 2, 4}).hash());
  EXPECT_NE(t.hash(), Tensor::ints({2, 1, 3}).hash());
  EXPECT_NE(t.hash(), t.retyped(Type(ElemKind::UInt64, {3})).hash());
  EXPECT_NE(Tensor(Type(ElemKind::UInt8, {8})).hash(), Tensor(Type(ElemKind::UInt8, {9})).hash());
  // Caches on disk outlive the program, so the function itself is pinned.
  EXPECT_EQ(t.hash(), 0x0CBDD50480BC4866u);
}

TEST(Tensor, EqualsByTypeAndBits) {
  EXPECT_EQ(Tensor::ints({1, 2}), Tensor::ints({1, 2}));
  EXPECT_FALSE(Tensor::ints({1, 2}) == Tensor::ints({1, 3}));
  EXPECT_FALSE(Tensor::scalar(ElemKind::Float32, 0.0) == Tensor::scalar(ElemKind::Float32, -0.0));
  EXPECT_FALSE(Tensor::scalar(ElemKind::Float32, 0) == Tensor::scalar(ElemKind::Int32, 0));
  EXPECT_EQ(Tensor(), Tensor());
  EXPECT_FALSE(Tensor() == Tensor::scalar(ElemKind::Float32, 0));
}

}  // namespace
}  // namespace aglow
