// Sizes that are prepared, and tensors made to fit them.
#include "runtime/prepared_sizes.h"

#include <gmock/gmock.h>

namespace aglow {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(PreparedSizes, AreCombined) {
  const auto sizes = PreparedSizes::create({{"n", {4, 1, 4}}, {"t", {8}}});
  ASSERT_TRUE(sizes.ok());
  EXPECT_THAT(sizes->combinations(), ElementsAre(NamedSizes{{"n", 1}, {"t", 8}}, NamedSizes{{"n", 4}, {"t", 8}}));
  EXPECT_THAT(PreparedSizes::create({})->combinations(), ElementsAre(NamedSizes{}));
  EXPECT_TRUE(PreparedSizes::create({})->empty());

  const std::vector<int64_t> many = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto refused = PreparedSizes::create({{"n", many}, {"t", many}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::LimitReached);
}

TEST(PreparedSizes, TheNextOneIsTaken) {
  const auto sizes = PreparedSizes::create({{"n", {2, 8, 4}}, {"t", {16}}});
  EXPECT_THAT(sizes->padded({{"n", 3}, {"t", 10}, {"other", 5}}), ElementsAre(Pair("n", 4), Pair("t", 16)));
  EXPECT_THAT(sizes->padded({{"n", 8}, {"t", 16}}), ElementsAre());
  EXPECT_THAT(sizes->padded({{"n", 9}}), ElementsAre());  // beyond the largest
}

TEST(PreparedSizes, TensorsAreFilledUpAndCut) {
  const Tensor rows = Tensor::fromDoubles(Type(ElemKind::Float32, Shape{2, 2}), {1, 2, 3, 4});
  const std::vector<std::string> names = {"n", ""};
  const Tensor filled = withSizes(rows, names, {{"n", 3}, {"", 5}});
  EXPECT_EQ(filled.type().shape(), (Shape{3, 2}));
  EXPECT_THAT(filled.doubles(), ElementsAre(1, 2, 3, 4, 0, 0));
  EXPECT_THAT(withSizes(filled, names, {{"n", 1}}).doubles(), ElementsAre(1, 2));
  EXPECT_EQ(withSizes(rows, names, {{"t", 3}}).data(), rows.data());  // nothing to do, nothing copied
}

}  // namespace
}  // namespace aglow
