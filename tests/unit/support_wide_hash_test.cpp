#include "support/wide_hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <set>
#include <vector>

#include "support/sha256_constants.h"

namespace aglow {
namespace {

constexpr size_t kStreams = 16, kBlock = 64 * kStreams;

std::vector<std::byte> bytesOf(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

// One stream after the other, as the standard writes it.
Digest plainHash(const std::vector<std::byte>& bytes) {
  uint32_t states[8][kStreams];
  const size_t whole = bytes.size() / kBlock;
  for (size_t stream = 0; stream < kStreams; ++stream) {
    std::array<uint32_t, 8> state = kSha256Start;
    for (size_t block = 0; block < whole; ++block) {
      uint32_t w[64];
      for (size_t i = 0; i < 16; ++i)
        std::memcpy(&w[i], bytes.data() + block * kBlock + (i * kStreams + stream) * 4, 4);
      for (size_t i = 16; i < 64; ++i)
        w[i] = w[i - 16] + w[i - 7] + (std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10);
      auto [a, b, c, d, e, f, g, h] = state;
      for (size_t i = 0; i < 64; ++i) {
        const uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) +
                            kSha256Rounds[i] + w[i];
        const uint32_t t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
      }
      const uint32_t more[] = {a, b, c, d, e, f, g, h};
      for (size_t k = 0; k < 8; ++k) state[k] += more[k];
    }
    for (size_t k = 0; k < 8; ++k) states[k][stream] = state[k];
  }
  std::string last(reinterpret_cast<const char*>(states), sizeof states);
  last.append(reinterpret_cast<const char*>(bytes.data()) + whole * kBlock, bytes.size() - whole * kBlock);
  const uint64_t size = bytes.size();
  last.append(reinterpret_cast<const char*>(&size), sizeof size);
  return sha256(last);
}

TEST(WideHash, IsSixteenStreamsOfTheStandard) {
  for (const size_t size : {size_t{0}, size_t{1}, kBlock - 1, kBlock, kBlock + 1, 5 * kBlock + 77})
    EXPECT_EQ(wideHash(bytesOf(size)), plainHash(bytesOf(size))) << size;
}

TEST(WideHash, DiffersForEveryLengthAndBit) {
  std::set<Digest> digests;
  for (size_t size = 0; size < 2100; ++size) digests.insert(wideHash(std::vector<std::byte>(size)));
  std::vector<std::byte> bytes(2 * kBlock + 5);
  for (size_t at = 0; at < bytes.size(); at += 13) {
    bytes[at] = std::byte{4};
    digests.insert(wideHash(bytes));
    bytes[at] = std::byte{0};
  }
  EXPECT_EQ(digests.size(), 2100 + (bytes.size() + 12) / 13);
}

}  // namespace
}  // namespace aglow
