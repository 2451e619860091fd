// Networks on blocked channels against themselves on planar ones, and where they are converted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "backends/cpu/layout/layout.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "layout_networks.h"
#include "lower/lower.h"
#include "optimize/optimize.h"

namespace aglow {
namespace {

using namespace testing_support;  // NOLINT
using testing::Contains;
using testing::Not;

// The network with its channels laid out, beside itself.
Function& laidOut(Network& n, int64_t lanes, std::set<std::string, std::less<>> disabled = {}) {
  if (Function* earlier = n.module.findFunction("blocked")) n.module.eraseFunction(earlier);
  AGLOW_CHECK(lower(n.f).ok(), "the network is lowered");
  Function& blocked = *n.module.clone(n.f, "blocked");
  ReferenceEvaluator evaluator;
  PassContext context{.evaluator = evaluator, .disabled = std::move(disabled)};
  const auto report = layoutPipeline({.lanes = lanes}).run(blocked, context);
  AGLOW_CHECK(report.ok(), report.error().text());
  const Status valid = verify(n.module);
  AGLOW_CHECK(valid.ok(), valid.error().text());
  return blocked;
}

void expectSame(Network& n) {
  for (const int64_t lanes : {4, 8, 16}) {
    const Function& blocked = laidOut(n, lanes);
    Rng rng(7);
    EXPECT_TRUE(sameResults(n.f, blocked, randomBindings(rng, n.f))) << lanes << " lanes\n"
                                                                     << print(n.f) << print(blocked);
  }
}

int targets(const Function& f) {
  return countOf(f, Op::BlockedConv) + countOf(f, Op::WinogradConv) + countOf(f, Op::DepthwiseConv);
}

TEST(BlockedLayout, NarrowFloatsAreConvolvedInF32) {
  for (const ElemKind kind : {ElemKind::Float16, ElemKind::BFloat16}) {
    Network n;
    const auto filter = [&](const Shape& shape) {
      return n.b.constant(
          Tensor::of(Type(kind, shape), std::vector<double>(static_cast<size_t>(shape.elements()), 0.125)));
    };
    Value x = n.b.casted(n.image({1, 16, 9, 8}), kind);
    x = n.b.relu(n.b.conv(x, filter({32, 16, 3, 3}), {}, {.pads = {1, 1, 1, 1}}));
    x = n.b.maxPool(x, {.kernel = {2, 2}});
    n.b.output("y", n.b.conv(x, filter({32, 1, 3, 3}), {}, {.pads = {1, 1, 1, 1}, .group = 32}));
    const Function& f = laidOut(n, 8);
    EXPECT_EQ(countOf(f, Op::Conv), 0);
    EXPECT_EQ(targets(f), 2);
    EXPECT_EQ(countOf(f, Op::Transpose), 2) << "the way in, and the way out";
    for (const auto& node : f.nodes())
      if (node->op() == Op::MaxPool || node->op() == Op::Relu) EXPECT_EQ(node->type().kind(), ElemKind::Float32);
    EXPECT_EQ(countOf(f, Op::Cast), 3) << "to the narrow kind, to f32, and once back";
  }
}

TEST(BlockedLayout, WhatJumpsTakesNarrowFloats) {
  Network n;
  const auto narrow = [&](double value, const Shape& shape) {
    return n.b.constant(
        Tensor::of(Type(ElemKind::Float16, shape), std::vector<double>(static_cast<size_t>(shape.elements()), value)));
  };
  const Value x = n.b.casted(n.image({4, 32}), ElemKind::Float16);
  const Value product = n.b.matMul(x, narrow(0.125, {32, 48}));
  const Value clipped = n.b.mul(n.b.tanh(product), narrow(0.3, {}));
  n.b.output("y", n.b.add(n.b.floor(clipped), clipped));
  n.b.output("z", n.b.transposed(x, {1, 0}));
  for (const auto& node : laidOut(n, 8).nodes()) {
    if (node->op() == Op::Mul || node->op() == Op::Tanh) EXPECT_EQ(node->type().kind(), ElemKind::Float32);
    if (node->op() == Op::Floor || node->op() == Op::Transpose) EXPECT_EQ(node->type().kind(), ElemKind::Float16);
    // A factor that is a number is a constant in f32 as well.
    if (node->op() == Op::Mul) EXPECT_TRUE(isConstant(node->input(1)));
  }
}

// Filters that are inputs are packed in every run, and what a convolution owes its filter is summed up in blocks.
TEST(BlockedLayout, FiltersThatChangeArePackedAtRunTime) {
  for (const int64_t step : {1, 2}) {
    Network n;
    const Value x = n.image({2, 24, 8, 9});
    const Value filter = n.b.input("filter", Type(ElemKind::Float32, Shape{40, 24, 3, 3}));
    const Value y = n.b.relu(n.b.conv(x, filter, {}, {.strides = {step, step}, .pads = {1, 1, 1, 1}}));
    const std::vector<int64_t> exchange{1, 0, 2, 3};
    n.b.output("y", n.b.conv(y, n.b.input("narrow", Type(ElemKind::Float32, Shape{8, 40, 1, 1})), {}, {}));
    n.b.output("sums", n.b.conv(n.b.transposed(x, exchange), n.b.transposed(y, exchange), {},
                                {.pads = {1, 1, 1, 1}, .dilations = {step, step}}));
    expectSame(n);
    const Function& f = laidOut(n, 8);
    EXPECT_EQ(countOf(f, Op::Conv), 0);
    EXPECT_EQ(targets(f), 2);
    EXPECT_EQ(countOf(f, Op::TapProducts), 1);
  }
}

TEST(BlockedLayout, ResidualBlocksAreConvertedAtTheExitOnly) {
  Network n;
  Value x = n.b.relu(n.conv(n.image({1, 3, 12, 10}), 32, 3, {.strides = {2, 2}}));
  x = n.residual(n.residual(n.b.maxPool(x, {.kernel = {2, 2}})));
  x = n.b.add(n.conv(x, 48, 1, {.strides = {2, 2}}), n.conv(n.b.relu(n.conv(x, 48, 3, {.strides = {2, 2}})), 48, 3));
  n.b.output("y", n.b.relu(x));
  expectSame(n);
  for (const int64_t lanes : {4, 8, 16}) {
    const Function& f = laidOut(n, lanes);
    EXPECT_EQ(countOf(f, Op::Conv), 0);
    EXPECT_EQ(targets(f), 8);
    EXPECT_EQ(countOf(f, Op::Transpose), 1);
    EXPECT_EQ(countOf(f, Op::Pad), 0);
    EXPECT_EQ(countOf(f, Op::Slice), 0);
  }
}

TEST(BlockedLayout, AHeadBehindAGlobalPoolNeedsNoConversion) {
  Network n;
  Value x = n.b.relu(n.conv(n.image({2, 3, 8, 8}), 16, 3));
  x = n.b.relu(n.conv(n.depthwise(x, 3), 32, 1));
  n.b.output("y", n.dense(n.b.reduced(x, "mean", {2, 3}, false), 10));
  expectSame(n);
  const Function& f = laidOut(n, 8);
  EXPECT_EQ(countOf(f, Op::Transpose), 0);
  EXPECT_EQ(countOf(f, Op::DepthwiseConv), 1);
  EXPECT_EQ(countOf(f, Op::PackedMatMul), 1);
  EXPECT_EQ(countOf(f, Op::MatMul), 0);
}

TEST(BlockedLayout, InvertedResidualsWithSqueezeExciteStayInBlocks) {
  Network n;
  const Value x = n.conv(n.image({1, 3, 9, 9}), 24, 3, {.strides = {2, 2}});
  Value y = n.b.hardSwish(n.depthwise(n.b.hardSwish(n.conv(x, 72, 1)), 3));
  y = n.b.add(n.conv(n.squeezeExcite(y), 24, 1), x);
  n.b.output("y", n.depthwise(y, 3, {2, 2}));
  expectSame(n);
  for (const int64_t lanes : {4, 8, 16}) EXPECT_EQ(countOf(laidOut(n, lanes), Op::Transpose), 1);
}

TEST(BlockedLayout, GroupsOfAFewChannelsStayInBlocks) {
  for (const int64_t members : {2, 4, 8, 16}) {
    Network n;
    Value x = n.b.relu(n.conv(n.image({2, 3, 9, 8}), 48, 3));
    x = n.b.relu(n.conv(x, 48, 3, {.strides = {2, 1}, .group = 48 / members}));
    n.b.output("y", n.conv(x, 16, 1));
    expectSame(n);
    for (const int64_t lanes : {4, 8, 16})
      if (members <= lanes) EXPECT_EQ(countOf(laidOut(n, lanes), Op::DepthwiseConv), 1) << members << " of " << lanes;
  }
}

// Numbers of a signed byte, as i32.
Value byteWeights(Network& n, const Shape& shape) {
  std::vector<int64_t> values(static_cast<size_t>(shape.elements()));
  for (int64_t& v : values) v = n.rng.between(INT8_MIN, INT8_MAX);
  return n.b.constant(Tensor::fromInts(Type(ElemKind::Int32, shape), values));
}

Value asBytes(Network& n, Value x, ElemKind kind) {
  return n.b.casted(n.b.mul(x, n.b.scalar(ElemKind::Float32, 50)), kind);
}

TEST(BlockedLayout, BytesLessAnOffsetAreConvolvedAsBytes) {
  for (const ElemKind kind : {ElemKind::UInt8, ElemKind::Int8})
    for (const int64_t offset : {0, 7, 100}) {
      Network n;
      const auto centered = [&](Value bytes) {
        const Value wide = n.b.casted(bytes, ElemKind::Int32);
        return offset == 0 ? wide : n.b.sub(wide, n.b.scalar(ElemKind::Int32, static_cast<double>(offset)));
      };
      Value x = asBytes(n, n.image({2, 3, 9, 8}), kind);
      Value sum = n.b.conv(centered(x), byteWeights(n, {24, 3, 3, 3}), byteWeights(n, {24}), {.pads = {1, 1, 1, 1}});
      x = n.b.maxPool(n.b.casted(sum, kind), {.kernel = {2, 2}, .pads = {0, 1, 1, 0}});
      sum = n.b.conv(centered(x), byteWeights(n, {24, 1, 3, 3}), {},
                     {.strides = {2, 1}, .pads = {0, 1, 2, 1}, .group = 24});
      sum = n.b.conv(centered(n.b.casted(sum, kind)), byteWeights(n, {40, 24, 1, 1}), {}, {});
      const Value flat = n.b.reshaped(n.b.casted(sum, kind), {2, sum.type().elements() / 2});
      n.b.output("y", n.b.matMul(centered(flat), byteWeights(n, {flat.dim(1), 33})));
      for (const int64_t lanes : {4, 8, 16}) {
        const Function& f = laidOut(n, lanes);
        Rng rng(7);
        EXPECT_TRUE(sameResults(n.f, f, randomBindings(rng, n.f))) << lanes << " lanes\n" << print(f);
        EXPECT_EQ(countOf(f, Op::Conv) + countOf(f, Op::MatMul), 0);
        EXPECT_EQ(countOf(f, Op::NarrowConv), 2);
        EXPECT_EQ(countOf(f, Op::ByteDepthwiseConv), 1);
        EXPECT_EQ(countOf(f, Op::NarrowMatMul), 1);
      }
    }
}

TEST(BlockedLayout, BytesThatMoveAfterwardsAreMultipliedAsBytes) {
  for (const ElemKind kind : {ElemKind::UInt8, ElemKind::Int8}) {
    Network n;
    const Value bytes = asBytes(n, n.image({2, 3, 5, 8}), kind);
    const Value wide = n.b.add(n.b.casted(bytes, ElemKind::Int32), n.b.scalar(ElemKind::Int32, -9));
    const Value heads = n.b.reshaped(n.b.transpose(wide, {.perm = {0, 2, 1, 3}}), {2, 5, 24});
    n.b.output("y", n.b.matMul(heads, byteWeights(n, {24, 33})));
    for (const int64_t lanes : {4, 16}) {
      const Function& f = laidOut(n, lanes);
      Rng rng(7);
      EXPECT_TRUE(sameResults(n.f, f, randomBindings(rng, n.f))) << lanes << " lanes\n" << print(f);
      EXPECT_EQ(countOf(f, Op::MatMul), 0);
      EXPECT_EQ(countOf(f, Op::NarrowMatMul), 1);
    }
  }
}

// As attention has them: both operands are computed, and the columns of the right one lie side by side.
TEST(BlockedLayout, ComputedBytesAreMultipliedAsBytes) {
  for (const ElemKind kind : {ElemKind::UInt8, ElemKind::Int8})
    for (const int64_t offset : {0, 9, kind == ElemKind::Int8 ? -128 : 255}) {
      Network n;
      const auto centered = [&](Value real) {
        const Value wide = n.b.casted(asBytes(n, real, kind), ElemKind::Int32);
        return offset == 0 ? wide : n.b.sub(wide, n.b.scalar(ElemKind::Int32, static_cast<double>(offset)));
      };
      const Value q = centered(n.image({2, 3, 5, 8})), k = centered(n.image({2, 7, 3, 8}));
      const Value scores = n.b.matMul(q, n.b.transpose(k, {.perm = {0, 2, 3, 1}}));
      n.b.output("y", n.b.matMul(centered(n.b.casted(scores, ElemKind::Float32)), centered(n.image({2, 1, 7, 4}))));
      for (const int64_t lanes : {4, 16}) {
        const Function& f = laidOut(n, lanes);
        Rng rng(7);
        EXPECT_TRUE(sameResults(n.f, f, randomBindings(rng, n.f))) << lanes << " lanes\n" << print(f);
        EXPECT_EQ(countOf(f, Op::MatMul), 0);
        EXPECT_EQ(countOf(f, Op::ByteMatMul), 2);
        EXPECT_THAT(print(f), testing::HasSubstr("transposed = true"));
      }
    }
}

TEST(BlockedLayout, GatesFromMatrixProductsBroadcast) {
  Network n;
  const Value x = n.conv(n.image({2, 16, 6, 6}), 24, 3);
  const Value gate = n.b.sigmoid(n.dense(n.b.reduced(x, "mean", {2, 3}), 24));
  n.b.output("y", n.conv(n.b.mul(x, n.b.reshaped(gate, {2, 24, 1, 1})), 16, 1));
  expectSame(n);
  EXPECT_EQ(countOf(laidOut(n, 8), Op::Transpose), 2);
}

TEST(BlockedLayout, ConcatenationsOfWholeBlocksStay) {
  Network n;
  const Value x = n.conv(n.image({1, 3, 7, 7}), 16, 3);
  const Value y = n.b.concat(
      {n.conv(x, 16, 1), n.conv(x, 32, 3), n.b.avgPool(x, {.kernel = {3, 3}, .pads = {1, 1, 1, 1}}), n.conv(x, 5, 1)},
      {.axis = 1});
  n.b.output("y", n.conv(y, 16, 1));
  expectSame(n);
  for (const int64_t lanes : {4, 8, 16}) EXPECT_EQ(countOf(laidOut(n, lanes), Op::Transpose), 1);
}

TEST(BlockedLayout, ConcatenationsInsideOfBlocksAreConverted) {
  Network n;
  const Value x = n.conv(n.image({1, 3, 7, 7}), 16, 3);
  n.b.output("y", n.conv(n.b.concat({n.conv(x, 6, 1), x}, {.axis = 1}), 16, 1));
  expectSame(n);
  EXPECT_GT(countOf(laidOut(n, 4), Op::Transpose), 1);
}

TEST(BlockedLayout, FlattenedMapsEnterTheHeadPlanar) {
  Network n;
  Value x = n.b.relu(n.conv(n.image({1, 3, 8, 8}), 16, 3));
  x = n.b.maxPool(n.b.relu(n.conv(x, 16, 3)), {.kernel = {2, 2}, .strides = {2, 2}});
  n.b.output("y", n.dense(n.b.relu(n.dense(x, 40)), 10));
  expectSame(n);
  const Function& f = laidOut(n, 8);
  EXPECT_EQ(countOf(f, Op::Transpose), 1);
  EXPECT_EQ(countOf(f, Op::PackedMatMul), 2);
}

TEST(BlockedLayout, UpsamplingStaysInBlocks) {
  Network n;
  const Value x = n.conv(n.image({1, 3, 6, 5}), 20, 3);
  Value up = n.b.resize(x, {.sizes = {1, 20, 12, 10}, .scales = {1, 1, 2, 2}, .mode = "nearest"});
  up = n.b.resize(up, {.sizes = {1, 20, 18, 10}, .scales = {1, 1, 1.5, 1}, .mode = "linear"});
  n.b.output("y", n.conv(up, 16, 3));
  expectSame(n);
  EXPECT_EQ(countOf(laidOut(n, 16), Op::Transpose), 1);
}

// Over the spread input they stay there; phases are convolved in blocks, and take their places as planes.
TEST(BlockedLayout, TransposedConvolutionsAreConvolvedInBlocks) {
  for (const int64_t kernel : {2, 3}) {
    Network n;
    const Value x = n.conv(n.image({1, 3, 6, 5}), 16, 3);
    const Value up = n.b.convTranspose(x, n.weights({16, 24, kernel, kernel}), {}, {.strides = {2, 2}});
    n.b.output("y", n.conv(up, 16, 3));
    AGLOW_CHECK(lower(n.f).ok(), "the network is lowered");
    ReferenceEvaluator evaluator;
    PassContext context{.evaluator = evaluator};
    ASSERT_TRUE(loweredPipeline().run(n.f, context).ok());
    expectSame(n);
    const Function& f = laidOut(n, 8);
    EXPECT_EQ(targets(f), 3);
    EXPECT_EQ(countOf(f, Op::Transpose), kernel == 2 ? 4 : 1);
  }
}

TEST(BlockedLayout, OneSpatialAxisIsTheSecondOfTwo) {
  Network n;
  const Value x = n.b.relu(n.conv(n.image({2, 3, 20}), 16, 5, {.strides = {2}}));
  const Value y = n.b.maxPool(n.conv(n.depthwise(x, 3), 24, 3, {.dilations = {2}}), {.kernel = {2}, .pads = {1, 0}});
  n.b.output("y", n.b.transposed(n.b.tanh(y), {0, 2, 1}));
  n.b.output("z", n.b.reduced(y, "max", {2}, false));
  expectSame(n);
  const Function& f = laidOut(n, 8);
  EXPECT_EQ(countOf(f, Op::Conv), 0);
  EXPECT_EQ(countOf(f, Op::Transpose), 1);
}

TEST(BlockedLayout, ChannelsLastIsOneStepAway) {
  Network n;
  const Value x = n.b.transposed(n.image({1, 8, 8, 16}), {0, 3, 1, 2});
  const Value y = n.conv(n.conv(x, 24, 3), 16, 3);
  n.b.output("y", n.b.transposed(y, {0, 2, 3, 1}));
  expectSame(n);
  EXPECT_EQ(countOf(laidOut(n, 8), Op::Transpose), 2);
}

TEST(BlockedLayout, WhatLeadsToAFirstConvolutionStaysPlanar) {
  Network n;
  const Value x = n.b.tanh(n.b.mul(n.image({1, 3, 8, 8}), n.weights({3, 1, 1})));
  n.b.output("y", n.conv(n.conv(x, 16, 3), 16, 3));
  expectSame(n);
  const Function& f = laidOut(n, 8);
  EXPECT_EQ(countOf(f, Op::Transpose), 1);
  EXPECT_THAT(opsOf(f), Contains("Tanh"));
  for (const auto& node : f.nodes())
    if (node->op() == Op::Tanh) EXPECT_EQ(node->type().rank(), 4);
}

TEST(BlockedLayout, HalfEmptyVectorsAreForNeighboursInBlocks) {
  for (const bool alone : {true, false}) {
    Network n;
    Value x = n.conv(n.image({1, 1, 12, 10}), 8, 3);
    if (!alone) x = n.conv(n.b.relu(x), 16, 3);
    n.b.output("y", x);
    expectSame(n);
    EXPECT_EQ(targets(laidOut(n, 8)), alone ? 1 : 2);
    EXPECT_EQ(targets(laidOut(n, 16)), alone ? 0 : 2);
  }
}

TEST(BlockedLayout, GroupsOfWholePanelsAreBlocked) {
  Network n;
  const Value x = n.conv(n.image({1, 3, 6, 6}), 32, 3);
  n.b.output("y", n.conv(x, 32, 3, {.group = 4}));
  expectSame(n);
  EXPECT_EQ(countOf(laidOut(n, 4), Op::DepthwiseConv), 0);
  EXPECT_EQ(targets(laidOut(n, 4)), 2);
  EXPECT_EQ(countOf(laidOut(n, 8), Op::DepthwiseConv), 1);
}

TEST(BlockedLayout, OddGroupsStayPlanar) {
  Network n;
  const Value x = n.conv(n.image({1, 3, 6, 6}), 24, 3);
  n.b.output("y", n.conv(x, 24, 3, {.group = 4}));
  expectSame(n);
  EXPECT_EQ(targets(laidOut(n, 8)), 1);
  EXPECT_EQ(countOf(laidOut(n, 8), Op::Conv), 1);
}

TEST(BlockedLayout, ConvolutionsThatCannotStayAsTheyAre) {
  Network n;
  const Value x = n.image({1, 2, 5, 5, 5}), p = n.b.input("p", Type(ElemKind::Bool, {}));
  n.b.output("a", n.b.conv(x, n.weights({16, 2, 3, 3, 3}), {}));
  const Value image = n.image({1, 16, 8, 8});
  // Too few places for a filter that would have to be packed in every run.
  n.b.output("b", n.b.conv(n.image({1, 16, 7, 7}), n.b.input("filter", Type(ElemKind::Float32, {16, 16, 3, 3})), {}));
  n.b.output("c", n.conv(image, 32, 3, {.group = 16}));
  n.b.output("d", n.conv(n.image({1, 1, 8, 8}), 1, 3));
  n.b.when(p);
  n.b.output("e", n.conv(image, 16, 3));
  const Function& f = laidOut(n, 8);
  EXPECT_EQ(countOf(f, Op::Conv), 5);
  EXPECT_EQ(targets(f), 0);
}

TEST(BlockedLayout, ALargePlanarValueIsNotConvertedForASmallGate) {
  Network n;
  const Value x = n.image({1, 16, 20, 20});
  const Value gate = n.b.sigmoid(n.conv(n.b.reduced(x, "mean", {2, 3}), 16, 1));
  n.b.output("y", n.b.softmax(n.b.mul(x, gate), {.axis = 1}));
  expectSame(n);
  EXPECT_EQ(countOf(laidOut(n, 8), Op::Transpose), 0);
}

TEST(BlockedLayout, AValueIsConvertedOnceForAllReaders) {
  Network n;
  const Value x = n.image({1, 16, 8, 8});
  const Value y = n.b.add(n.conv(x, 16, 3), n.conv(n.b.tanh(x), 16, 1));
  n.b.output("y", n.b.softmax(y, {.axis = 1}));
  n.b.output("z", n.conv(n.b.add(x, y), 16, 1));
  n.b.output("m", n.b.reduced(y, "max", {1}));
  expectSame(n);
  EXPECT_EQ(countOf(laidOut(n, 8), Op::Transpose), 3);  // x, y and z
}

TEST(BlockedLayout, WhatASaveChangedIsReadAgain) {
  Network n;
  Placeholder* state = n.module.addPlaceholder("state", Type(ElemKind::Float32, {1, 16, 4, 4}));
  n.b.output("y", n.conv(state->result(), 16, 3));
  n.b.save(n.b.tanh(state->result()), state);
  n.b.output("z", n.conv(state->result(), 16, 3));
  expectSame(n);
}

TEST(BlockedLayout, WinogradCanBeForbidden) {
  Network n;
  n.b.output("y", n.conv(n.image({1, 32, 12, 12}), 32, 3));
  expectSame(n);
  EXPECT_EQ(countOf(laidOut(n, 8), Op::WinogradConv), 1);
  const Function& direct = laidOut(n, 8, {"winograd"});
  EXPECT_EQ(countOf(direct, Op::WinogradConv), 0);
  EXPECT_EQ(countOf(direct, Op::BlockedConv), 1);
  EXPECT_EQ(targets(laidOut(n, 8, {"blocked-layout"})), 0);
}

TEST(BlockedLayout, BiasesAreKnownWhenCompiling) {
  Network n;
  const Value filter = n.b.transposed(n.weights({3, 3, 16, 16}), {3, 2, 0, 1});
  n.b.output("y", n.b.conv(n.image({1, 16, 8, 8}), filter, n.b.splat({.value = 0.5, .shape = {16}})));
  n.b.output("z", n.b.conv(n.image({1, 16, 8, 8}), filter, n.b.input("bias", Type(ElemKind::Float32, {16}))));
  expectSame(n);
  const Function& f = laidOut(n, 8);
  EXPECT_THAT(opsOf(f), Not(Contains("Splat")));
  EXPECT_EQ(targets(f), 2);
}

TEST(PackWeights, StepsThatShareWeightsShareTheirPanels) {
  Network n;
  const Value w = n.weights({16, 16});
  Value state = n.image({1, 16});
  for (int step = 0; step < 4; ++step) state = n.b.tanh(n.b.matMul(state, w));
  n.b.output("y", n.b.matMul(state, w));
  expectSame(n);
  ReferenceEvaluator evaluator;
  PassContext context{.evaluator = evaluator};
  ASSERT_TRUE(*packWeightsPass({.lanes = 4}).run(n.f, context));
  EXPECT_EQ(countOf(n.f, Op::PackedMatMul), 5);
  std::set<const Node*> panels;
  for (const auto& node : n.f.nodes())
    if (node->op() == Op::PackedMatMul) panels.insert(node->input(1).node);
  EXPECT_EQ(panels.size(), 1u);
}

TEST(PackWeights, KnownRightSidesArePacked) {
  Network n;
  const Value x = n.image({2, 3, 20});
  const Value shared = n.weights({30, 20});
  n.b.output("a", n.b.matMul(x, n.weights({20, 33})));
  n.b.output("b", n.b.matMul(x, n.b.transposed(shared, {1, 0})));
  n.b.output("c", n.b.matMul(n.b.reshaped(x, {6, 20}), n.weights({1, 20, 7})));
  n.b.output("d", n.b.gather(shared, n.b.ints({3, 4}), {.axis = 0}));
  n.b.output("e", n.b.matMul(x, n.b.input("dynamic", Type(ElemKind::Float32, {20, 8}))));
  n.b.output("f", n.b.matMul(x, n.weights({2, 20, 8})));
  expectSame(n);
  const Function& f = laidOut(n, 8);
  EXPECT_EQ(countOf(f, Op::PackedMatMul), 3);
  EXPECT_EQ(countOf(f, Op::MatMul), 2);
  EXPECT_EQ(countOf(laidOut(n, 8, {"pack-weights"}), Op::PackedMatMul), 0);
}

class RandomNetworks : public testing::TestWithParam<int> {};

TEST_P(RandomNetworks, KeepTheirMeaning) {
  Network n(static_cast<uint64_t>(GetParam()));
  std::vector<Value> values{
      n.image({n.rng.between(1, 2), n.rng.between(1, 20), n.rng.between(5, 9), n.rng.between(5, 9)})};
  for (int i = 0; i < 8; ++i) {
    const Value x = values[static_cast<size_t>(n.rng.between(std::max<int64_t>(i - 2, 0), i))];
    const bool large = x.type().elements() > 20000;
    values.push_back(large ? n.b.slice(x, {.starts = {0, 0, 0, 0}, .sizes = {1, std::min<int64_t>(x.dim(1), 8), 5, 5}})
                           : n.randomLayer(x));
  }
  for (const Value v : values)
    if (v.node->uses().empty() || n.rng.between(0, 3) == 0) n.b.output("y", v);
  expectSame(n);
}

INSTANTIATE_TEST_SUITE_P(BlockedLayout, RandomNetworks, testing::Range(0, 200));

}  // namespace
}  // namespace aglow
