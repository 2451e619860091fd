#include "support/sha256.h"

#include <gtest/gtest.h>

#include <set>

namespace aglow {
namespace {

// The examples of the standard, and its million of letters.
TEST(Sha256, HasTheValuesOfTheStandard) {
  const auto hash = [](std::string_view text) { return hexadecimal(sha256(text)); };
  EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Around the ends of blocks, where the length finds its place or does not.
TEST(Sha256, DiffersForEveryLength) {
  std::set<Digest> digests;
  for (size_t size = 0; size < 200; ++size) digests.insert(sha256(std::string(size, '\0')));
  EXPECT_EQ(digests.size(), 200u);
}

}  // namespace
}  // namespace aglow
