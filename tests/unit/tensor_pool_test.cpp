#include "tensor/tensor_pool.h"

#include <gtest/gtest.h>

namespace aglow {

namespace {

Tensor numbers(double first) { return Tensor::fromDoubles(Type(ElemKind::Float32, Shape{3}), {first, 2, 3}); }

TEST(TensorPool, KeepsEqualTensorsOnce) {
  TensorPool pool;
  const auto a = pool.shared(numbers(1)), b = pool.shared(numbers(1)), c = pool.shared(numbers(7));
  EXPECT_EQ(a->data(), b->data());
  EXPECT_NE(a->data(), c->data());
  const auto other = pool.shared(numbers(1).retyped(Type(ElemKind::Int32, Shape{3})));
  EXPECT_NE(a->data(), other->data());
  EXPECT_EQ(other->type().kind(), ElemKind::Int32);
}

TEST(TensorPool, ForgetsWhatNobodyHolds) {
  TensorPool pool;
  std::weak_ptr<const Tensor> seen = pool.shared(numbers(1));
  EXPECT_TRUE(seen.expired());
  EXPECT_EQ(pool.shared(numbers(1))->doubles().front(), 1);
}

TEST(TensorPool, LeavesForeignBytesWhereTheyAre) {
  TensorPool pool;
  const auto owner = std::make_shared<Tensor>(numbers(1));
  const Tensor view(owner->type(), owner->data(), owner);
  EXPECT_EQ(pool.shared(view)->data(), owner->data());
}

}  // namespace

}  // namespace aglow
