// The words of a stream lie as far apart as a vector is long, so that a vector is one word of each.
#include "support/wide_hash.h"

#include <cstdint>
#include <cstring>

#include "support/sha256_constants.h"

namespace aglow {

namespace {

constexpr size_t kStreams = 16;
using Words = uint32_t __attribute__((vector_size(4 * kStreams)));  // one of each stream
constexpr size_t kBlock = 16 * sizeof(Words);

struct Streams {
  Words words[8];
};

template <int kRight>
[[gnu::always_inline]] inline void rotate(const Words& from, Words& to) {
  to = from >> kRight | from << (32 - kRight);
}

// The standard's compression, of sixteen blocks at once.
[[gnu::always_inline]] inline void addBlocks(Streams& streams, const std::byte* bytes, size_t blocks) {
  for (; blocks > 0; --blocks, bytes += kBlock) {
    Words w[16], s[8], r0, r1, r2;
    std::memcpy(w, bytes, kBlock);
    std::memcpy(s, streams.words, sizeof s);
#pragma clang loop unroll(full)
    for (size_t i = 0; i < 64; ++i) {
      Words& word = w[i % 16];
      if (i >= 16) {
        const Words &early = w[(i + 1) % 16], &late = w[(i + 14) % 16];
        rotate<7>(early, r0);
        rotate<18>(early, r1);
        word += (r0 ^ r1 ^ early >> 3) + w[(i + 9) % 16];
        rotate<17>(late, r0);
        rotate<19>(late, r1);
        word += r0 ^ r1 ^ late >> 10;
      }
      rotate<6>(s[4], r0);
      rotate<11>(s[4], r1);
      rotate<25>(s[4], r2);
      const Words t1 = s[7] + (r0 ^ r1 ^ r2) + (s[6] ^ (s[4] & (s[5] ^ s[6]))) + kSha256Rounds[i] + word;
      rotate<2>(s[0], r0);
      rotate<13>(s[0], r1);
      rotate<22>(s[0], r2);
      const Words t2 = (r0 ^ r1 ^ r2) + ((s[0] & s[1]) | (s[2] & (s[0] | s[1])));
      for (size_t k = 7; k > 0; --k) s[k] = s[k - 1];
      s[4] += t1;
      s[0] = t1 + t2;
    }
    for (size_t k = 0; k < 8; ++k) streams.words[k] += s[k];
  }
}

using AddBlocks = void(Streams&, const std::byte*, size_t);

void addPlain(Streams& streams, const std::byte* bytes, size_t blocks) { addBlocks(streams, bytes, blocks); }
#if defined(__x86_64__)
[[gnu::target("avx2")]] void addAvx2(Streams& streams, const std::byte* bytes, size_t blocks) {
  addBlocks(streams, bytes, blocks);
}
[[gnu::target("avx512f")]] void addAvx512(Streams& streams, const std::byte* bytes, size_t blocks) {
  addBlocks(streams, bytes, blocks);
}
AddBlocks* chosen() {
  if (__builtin_cpu_supports("avx512f")) return addAvx512;
  return __builtin_cpu_supports("avx2") ? addAvx2 : addPlain;
}
#else
AddBlocks* chosen() { return addPlain; }
#endif

}  // namespace

Digest wideHash(std::span<const std::byte> bytes) {
  static AddBlocks* const add = chosen();
  Streams streams;
  for (size_t k = 0; k < 8; ++k) streams.words[k] = Words{} + kSha256Start[k];
  const size_t whole = bytes.size() / kBlock;
  add(streams, bytes.data(), whole);
  // The streams as they are after whole blocks, the rest, and how many bytes there were.
  const std::span<const std::byte> rest = bytes.subspan(whole * kBlock);
  const uint64_t size = bytes.size();
  std::byte last[sizeof streams + kBlock + sizeof size];
  std::memcpy(last, &streams, sizeof streams);
  if (!rest.empty()) std::memcpy(last + sizeof streams, rest.data(), rest.size());
  std::memcpy(last + sizeof streams + rest.size(), &size, sizeof size);
  return sha256({reinterpret_cast<const char*>(last), sizeof streams + rest.size() + sizeof size});
}

}  // namespace aglow
