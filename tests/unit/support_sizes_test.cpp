// Arithmetic on sizes, and the hash of bytes.
#include "support/sizes.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

#include "support/hash.h"

namespace aglow {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST(Sizes, OverflowIsAnAnswer) {
  EXPECT_EQ(checkedAdd(kMax, 0), kMax);
  EXPECT_EQ(checkedAdd(kMax, 1), std::nullopt);
  EXPECT_EQ(checkedSub(kMin, 1), std::nullopt);
  EXPECT_EQ(checkedSub(5, 7), -2);
  EXPECT_EQ(checkedMul(int64_t{1} << 32, int64_t{1} << 31), std::nullopt);
  EXPECT_EQ(checkedMul(int64_t{1} << 31, int64_t{1} << 31), int64_t{1} << 62);
}

TEST(Sizes, QuotientsRoundAsNamed) {
  EXPECT_EQ(floorDiv(7, 2), 3);
  EXPECT_EQ(floorDiv(-7, 2), -4);
  EXPECT_EQ(floorDiv(-8, 2), -4);
  EXPECT_EQ(ceilDiv(7, 2), 4);
  EXPECT_EQ(ceilDiv(-7, 2), -3);
  EXPECT_EQ(ceilDiv(8, 2), 4);
  EXPECT_EQ(alignUp(0, 64), 0);
  EXPECT_EQ(alignUp(1, 64), 64);
  EXPECT_EQ(alignUp(64, 64), 64);
}

TEST(Hash, SeesEveryByteAndTheLength) {
  const std::string text(64, 'a');
  std::set<uint64_t> hashes;
  for (size_t size = 0; size <= text.size(); ++size) hashes.insert(hashBytes(text.data(), size));
  for (size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = 'b';
    hashes.insert(hashBytes(other.data(), other.size()));
  }
  EXPECT_EQ(hashes.size(), 65u + 64u);
  EXPECT_NE(hashBytes("x", 1, 1), hashBytes("x", 1, 2));
}

}  // namespace
}  // namespace aglow
