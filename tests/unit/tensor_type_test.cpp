// Shapes and types: which exist, how they broadcast, how they print.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tensor/type.h"

namespace aglow {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Shape, KnowsItsElementsAndStrides) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape.elements(), 24);
  EXPECT_THAT(shape.strides(), ElementsAre(12, 4, 1));
  EXPECT_EQ(shape.text(), "[2,3,4]");
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape().text(), "[]");
  EXPECT_EQ((Shape{3, 0, 5}).elements(), 0);
}

TEST(Shape, RefusesWhatCannotBeAddressed) {
  const auto code = [](std::vector<int64_t> dims) { return Shape::create(std::move(dims)).error().code; };
  EXPECT_EQ(code({2, -1}), Code::BadTensor);
  EXPECT_EQ(code({int64_t{1} << 40, int64_t{1} << 40}), Code::BadTensor);
  EXPECT_EQ(code({std::numeric_limits<int64_t>::max()}), Code::BadTensor);
  EXPECT_EQ(code({int64_t{1} << 58}), Code::BadTensor);
  EXPECT_TRUE(Shape::create({(int64_t{1} << 58) - 1}).ok());
  // A zero does not hide an overflow: strides and slices of such a shape would overflow.
  EXPECT_EQ(code({0, int64_t{1} << 40, int64_t{1} << 40}), Code::BadTensor);
  EXPECT_THROW(Shape({-1}), InternalError);
}

TEST(Shape, HasALimitedNumberOfAxes) {
  EXPECT_TRUE(Shape::create(std::vector<int64_t>(Shape::kMaxRank, 1)).ok());
  const Result<Shape> more = Shape::create(std::vector<int64_t>(Shape::kMaxRank + 1, 1));
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, Code::BadTensor);
}

TEST(Shape, BroadcastsAsNumpyDoes) {
  EXPECT_EQ(*broadcastShapes({2, 1, 4}, {3, 1}), (Shape{2, 3, 4}));
  EXPECT_EQ(*broadcastShapes({}, {5}), (Shape{5}));
  EXPECT_EQ(*broadcastShapes({0}, {1}), (Shape{0}));
  EXPECT_EQ(*broadcastShapes({1, 0}, {7, 1}), (Shape{7, 0}));
  const auto bad = broadcastShapes({2, 3}, {4});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, Code::BadNode);
  EXPECT_THAT(bad.error().message, HasSubstr("[2,3]"));
  EXPECT_THAT(bad.error().message, HasSubstr("[4]"));
  EXPECT_FALSE(broadcastShapes({0}, {2}).ok());
  EXPECT_FALSE(broadcastShapes({int64_t{1} << 40, 1}, {1, int64_t{1} << 40}).ok());
}

TEST(Shape, StretchedAxesHaveNoStride) {
  EXPECT_THAT(broadcastStrides({3, 1}, {2, 3, 4}), ElementsAre(0, 1, 0));
  EXPECT_THAT(broadcastStrides({2, 3, 4}, {2, 3, 4}), ElementsAre(12, 4, 1));
  EXPECT_THAT(broadcastStrides({}, {2, 2}), ElementsAre(0, 0));
  EXPECT_THROW(broadcastStrides({2}, {3}), InternalError);
  EXPECT_THROW(broadcastStrides({1, 1}, {1}), InternalError);
}

TEST(Type, PrintsKindShapeAndParameters) {
  EXPECT_EQ(Type(ElemKind::Float32, {1, 3, 8, 8}).text(), "f32[1,3,8,8]");
  EXPECT_EQ(Type(ElemKind::Bool, {}).text(), "bool[]");
  EXPECT_EQ(Type::quantized(ElemKind::QInt8, {4}, {-1, {0.5f}, {3}})->text(), "qi8[4]<0.5:3>");
  EXPECT_EQ(Type::quantized(ElemKind::QInt8, {2, 4}, {0, {0.5f, 0.25f}, {3, 0}})->text(),
            "qi8[2,4]<axis 0: 0.5:3, 0.25:0>");
  // The digits are as many as give back the same float.
  EXPECT_EQ(Type::quantized(ElemKind::QUInt8, {1}, {-1, {0.1f}, {128}})->text(), "qu8[1]<0.1:128>");
  EXPECT_EQ(Type::quantized(ElemKind::QUInt8, {1}, {-1, {1.0f / 3}, {0}})->text(), "qu8[1]<0.33333334:0>");
}

TEST(Type, CountsStorageBytes) {
  EXPECT_EQ(Type(ElemKind::Float64, {3, 5}).bytes(), 120);
  EXPECT_EQ(Type(ElemKind::Int4, {3, 5}).bytes(), 15);
  EXPECT_EQ(Type(ElemKind::Float32, {0, 5}).bytes(), 0);
}

TEST(Type, ChecksQuantization) {
  const auto make = [](ElemKind kind, QuantParams params) {
    return Type::quantized(kind, {2, 3}, std::move(params)).ok();
  };
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(make(ElemKind::QInt8, {-1, {0.5f}, {-128}}));
  EXPECT_TRUE(make(ElemKind::QInt32, {1, {1, 1, 1}, {0, 0, std::numeric_limits<int32_t>::min()}}));
  for (const float scale : {0.0f, -1.0f, inf, nan}) EXPECT_FALSE(make(ElemKind::QInt8, {-1, {scale}, {0}})) << scale;
  EXPECT_FALSE(make(ElemKind::QInt8, {-1, {1}, {128}}));
  EXPECT_FALSE(make(ElemKind::QUInt8, {-1, {1}, {-1}}));
  EXPECT_FALSE(make(ElemKind::QInt16, {-1, {1}, {40000}}));
  EXPECT_FALSE(make(ElemKind::QInt8, {1, {1, 1}, {0, 0}}));
  EXPECT_FALSE(make(ElemKind::QInt8, {0, {1, 1}, {0}}));
  EXPECT_FALSE(make(ElemKind::QInt8, {2, {1}, {0}}));
  EXPECT_FALSE(make(ElemKind::QInt8, {-2, {1}, {0}}));
  EXPECT_FALSE(make(ElemKind::Int8, {-1, {1}, {0}}));
  EXPECT_EQ(Type::quantized(ElemKind::QInt8, {2}, {}).error().code, Code::BadQuantization);
}

TEST(Type, KeepsParametersInAnotherShapeOfTheSameAxis) {
  const Type type = *Type::quantized(ElemKind::QInt8, {2, 3}, {0, {1, 2}, {0, 0}});
  EXPECT_EQ(type.withShape({2, 7}).quant(), type.quant());
  EXPECT_THROW(type.withShape({3, 2}), InternalError);
  EXPECT_THROW(type.withShape({}), InternalError);
  EXPECT_EQ(type.withKind(ElemKind::Float32), Type(ElemKind::Float32, {2, 3}));
  EXPECT_NE(type, *Type::quantized(ElemKind::QInt8, {2, 3}, {0, {1, 3}, {0, 0}}));
}

}  // namespace
}  // namespace aglow
