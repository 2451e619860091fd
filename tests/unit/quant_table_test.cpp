// Tables that are read slice by slice, as integers: which ones, what they give, what is kept.
#include "quant/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compile/evaluate.h"
#include "graph/verifier.h"
#include "quant/islands.h"
#include "support/rng.h"

namespace aglow::quant {

namespace {

// Slices of very different sizes, one of zeros alone.
Tensor tableOfSlices(int axis) {
  Rng rng(1);
  const Shape shape{320, 130};
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t slice = axis == 0 ? i / 130 : i % 130;
    values[i] = slice == 3 ? 0 : rng.real(-1, 1) * std::pow(10.0, static_cast<double>(slice % 7) - 3);
  }
  return Tensor::of(Type(ElemKind::Float32, shape), values);
}

class Reading {
public:
  Reading(const Tensor& table, int axis) : b_(*module_.addFunction("main")), table_(b_.constant(table, "table")) {
    const Value indices = b_.input("indices", Type(ElemKind::Int64, {2, 3}));
    b_.output("y", b_.named("rows").gather(table_, indices, {.axis = axis}));
  }

  Function& function() { return *module_.functions().front(); }
  Builder& builder() { return b_; }
  Value table() const { return table_; }

  std::vector<double> run() {
    const Tensor indices = Tensor::fromInts(Type(ElemKind::Int64, {2, 3}), std::vector<int64_t>{0, 5, 3, -1, 5, 100});
    auto results = evaluateFunction(function(), {{"indices", indices}});
    EXPECT_TRUE(results.ok()) << results.error().text();
    return results->front().doubles();
  }

private:
  Module module_;
  Builder b_;
  Value table_;
};

bool readsBytes(const Function& function) {
  return std::any_of(function.nodes().begin(), function.nodes().end(), [](const auto& node) {
    return node->op() == Op::Gather && node->input(0).kind() == ElemKind::Int8;
  });
}

TEST(QuantTable, GivesEachSliceInItsOwnScale) {
  for (const int axis : {0, 1}) {
    Reading reading(tableOfSlices(axis), axis);
    const std::vector<double> expected = reading.run();
    const Islands islands = possibleIslands(reading.function());
    ASSERT_EQ(islands.tables.size(), 1U);
    quantizeTables(reading.builder(), islands.tables, schemas().front());
    const Status valid = verify(reading.function().module());
    ASSERT_TRUE(valid.ok()) << valid.error().text();
    EXPECT_TRUE(readsBytes(reading.function()));
    const std::vector<double> got = reading.run();
    // Of slices: along axis 0 [2, 3] of 130 elements each, along axis 1 320 times [2, 3].
    const size_t slices = 6, inner = axis == 0 ? 130 : 1, elements = axis == 0 ? 130 : 320;
    for (size_t s = 0; s < slices; ++s) {
      const auto at = [&](size_t i) { return axis == 0 ? s * inner + i : i * slices + s; };
      double largest = 0;
      for (size_t i = 0; i < elements; ++i) largest = std::max(largest, std::abs(expected[at(i)]));
      for (size_t i = 0; i < elements; ++i)
        EXPECT_LE(std::abs(got[at(i)] - expected[at(i)]), largest / 127 * 0.501) << "slice " << s;
    }
  }
}

TEST(QuantTable, LeavesWhatIsSmallNamedOrReadOtherwise) {
  EXPECT_TRUE(possibleIslands(Reading(Tensor(Type(ElemKind::Float32, {100, 100})), 0).function()).tables.empty());
  Reading named(tableOfSlices(0), 0);
  EXPECT_TRUE(possibleIslands(named.function(), {"rows"}).tables.empty());
  EXPECT_TRUE(possibleIslands(named.function(), {"Gather"}).tables.empty());
  Reading shared(tableOfSlices(0), 0);
  shared.builder().output("sum", shared.builder().reduced(shared.table(), "sum", {0, 1}));
  EXPECT_TRUE(possibleIslands(shared.function()).tables.empty());
}

TEST(QuantTable, LeavesWhatIsNotFinite) {
  Tensor table = tableOfSlices(0);
  reinterpret_cast<float*>(table.mutableData())[7] = std::numeric_limits<float>::infinity();
  Reading reading(table, 0);
  quantizeTables(reading.builder(), possibleIslands(reading.function()).tables, schemas().front());
  EXPECT_FALSE(readsBytes(reading.function()));
}

}  // namespace

}  // namespace aglow::quant
