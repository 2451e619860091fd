#include "support/suggest.h"

#include <gtest/gtest.h>

#include <vector>

namespace aglow {
namespace {

const std::vector<std::string_view> kWords = {"Conv", "ConvTranspose", "Concat", "MatMul", "Add", "And"};

TEST(Suggest, FindsTheNearestWord) {
  EXPECT_EQ(nearest("Cnov", kWords), "Conv");
  EXPECT_EQ(nearest("conv", kWords), "Conv");
  EXPECT_EQ(nearest("ConvTanspos", kWords), "ConvTranspose");
  EXPECT_EQ(nearest("Matmull", kWords), "MatMul");
  EXPECT_EQ(nearest("Ad", kWords), "Add");
}

TEST(Suggest, StaysSilentWhenNothingIsClose) {
  EXPECT_EQ(nearest("Softmax", kWords), "");
  EXPECT_EQ(nearest("", kWords), "");
  EXPECT_EQ(nearest("Conv", {}), "");
  EXPECT_EQ(nearest(std::string(1 << 20, 'C'), kWords), "");
}

TEST(Suggest, AsksAQuestion) {
  EXPECT_EQ(didYouMean("Cov", kWords), "did you mean 'Conv'?");
  EXPECT_EQ(didYouMean("Softmax", kWords), "");
}

}  // namespace
}  // namespace aglow
