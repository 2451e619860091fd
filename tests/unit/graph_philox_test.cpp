// Random numbers of counters: what is published of the generator, nodes against the host, and that they are spread out.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "compile/evaluate.h"
#include "graph/philox.h"

namespace aglow {
namespace {

std::vector<double> fromNodes(const Shape& shape, uint64_t seed, int64_t run) {
  Module module;
  Builder b(*module.addFunction("main"));
  b.output("y", uniformNumbers(b, shape, seed, b.input("run", Type(ElemKind::UInt64, Shape{}))));
  const NamedTensors bindings{{"run", Tensor::fromInts(Type(ElemKind::UInt64, Shape{}), {run})}};
  const auto values = evaluateFunction(*module.findFunction("main"), bindings);
  EXPECT_TRUE(values.ok()) << values.error().text();
  return values->front().doubles();
}

// Philox2x32-10 of a counter and key of zeros begins with ff1dae59.
TEST(Philox, GivesPublishedNumbers) {
  EXPECT_EQ(uniformNumbers(1, 0, 0), std::vector<double>{std::ldexp(0xff1dae, -24)});
}

TEST(Philox, NodesGiveWhatTheHostGives) {
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 5, 4}, Shape{2, 300}, Shape{40, 11}, Shape{0, 3}})
    EXPECT_EQ(fromNodes(shape, 5, 3), uniformNumbers(shape.elements(), 5, 3)) << shape.text();
}

TEST(Philox, PlacesRunsAndSeedsDecide) {
  constexpr int64_t kCount = 10000;
  const std::vector<double> numbers = uniformNumbers(kCount, 1, 0);
  double sum = 0;
  for (const double number : numbers) {
    EXPECT_TRUE(number >= 0 && number < 1);
    sum += number;
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.01);
  EXPECT_GT(std::set<double>(numbers.begin(), numbers.end()).size(), 9990U);
  EXPECT_NE(numbers, uniformNumbers(kCount, 2, 0));
  EXPECT_NE(numbers, uniformNumbers(kCount, 1, 1));
}

}  // namespace
}  // namespace aglow
