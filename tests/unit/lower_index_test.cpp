// Gathers and scatters with computed places: every index outside of its axis is refused, whatever row it would alias.
#include <gtest/gtest.h>

#include <limits>

#include "compile/evaluate.h"
#include "graph/builder.h"

namespace aglow {

namespace {

using Build = Value(Builder& b, Value data, Value indices, Value updates);

// Data [2,3,4] holds 0, 1, 2 ...; updates are all 100.
Result<std::vector<double>> run(Build* build, const Shape& indexShape, const std::vector<int64_t>& indices,
                                const Shape& updateShape = {}) {
  Module module;
  Function& function = *module.addFunction("f");
  Builder b(function);
  std::vector<int64_t> counting;
  for (int64_t i = 0; i < 24; ++i) counting.push_back(i);
  const Value data = b.input("data", Type(ElemKind::Float32, Shape{2, 3, 4}));
  const Value places = b.input("indices", Type(ElemKind::Int64, indexShape));
  const Value updates = b.splat({.value = 100, .elem = ElemKind::Float32, .shape = updateShape.dims()});
  b.output("y", build(b, data, places, updates));
  AGLOW_TRY(const std::vector<Tensor> results,
            evaluateFunction(function, {{"data", Tensor::of(data.type(), counting)},
                                        {"indices", Tensor::of(places.type(), indices)}}));
  return results.front().doubles();
}

Value gatherElements(Builder& b, Value data, Value indices, Value) {
  return b.gatherElements(data, indices, {.axis = 1});
}
Value gatherNd(Builder& b, Value data, Value indices, Value) { return b.gatherND(data, indices); }
Value gatherNdBatched(Builder& b, Value data, Value indices, Value) {
  return b.gatherND(data, indices, {.batchDims = 1});
}
Value scatterElements(Builder& b, Value data, Value indices, Value updates) {
  return b.scatterElements(data, indices, updates, {.axis = 1});
}
Value scatterNd(Builder& b, Value data, Value indices, Value updates) { return b.scatterND(data, indices, updates); }

constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();

void expectRefused(const Result<std::vector<double>>& result, int64_t index) {
  ASSERT_FALSE(result.ok()) << "index " << index;
  EXPECT_EQ(result.error().code, Code::RuntimeValue) << result.error().text();
}

TEST(LowerIndex, RefusesIndicesBeyondTheirAxis) {
  for (const int64_t bad : {int64_t{3}, int64_t{-4}, int64_t{23}, kMost, kLeast}) {
    expectRefused(run(gatherElements, Shape{1, 1, 1}, {bad}), bad);
    expectRefused(run(scatterElements, Shape{1, 1, 1}, {bad}, Shape{1, 1, 1}), bad);
    expectRefused(run(gatherNd, Shape{1, 3}, {0, bad, 0}), bad);
    expectRefused(run(gatherNdBatched, Shape{2, 1}, {0, bad}), bad);
    expectRefused(run(scatterNd, Shape{1, 3}, {1, bad, 3}, Shape{1}), bad);
  }
}

TEST(LowerIndex, RefusesEveryPlaceOfATuple) {
  for (size_t place = 0; place < 3; ++place) {
    std::vector<int64_t> tuple{0, 0, 0};
    tuple[place] = 4;  // the first that no axis has
    expectRefused(run(gatherNd, Shape{1, 3}, tuple), 4);
    tuple[place] = -5;
    expectRefused(run(scatterNd, Shape{1, 3}, tuple, Shape{1}), -5);
  }
}

TEST(LowerIndex, CountsFromTheEnd) {
  EXPECT_EQ(*run(gatherElements, Shape{2, 1, 1}, {-1, -3}), (std::vector<double>{8, 12}));
  EXPECT_EQ(*run(gatherNd, Shape{2, 3}, {-1, -1, -1, 0, -2, 1}), (std::vector<double>{23, 5}));
  EXPECT_EQ(*run(gatherNdBatched, Shape{2, 2}, {0, 1, -1, -4}), (std::vector<double>{1, 20}));
}

TEST(LowerIndex, WritesOnlyWhatTuplesName) {
  const auto result = run(scatterNd, Shape{1, 2}, {1, -1}, Shape{1, 4});
  ASSERT_TRUE(result.ok()) << result.error().text();
  for (size_t i = 0; i < result->size(); ++i) EXPECT_EQ((*result)[i], i < 20 ? static_cast<double>(i) : 100) << i;
}

}  // namespace

}  // namespace aglow
