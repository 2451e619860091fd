// Attention over bytes: products of bytes for scores and for values, and in between weights that are rounded to 255ths
// of the largest one of each query. Where a query's keys are too many for their scores to stay in memory, these are
// computed twice: the largest one comes first.
#include "backends/cpu/kernels/attention/sight.h"
#include "backends/cpu/kernels/gemm/byte_pack.h"
#include "backends/cpu/kernels/math/exp_log_f32.h"

namespace aglow::cpu {

// Numbers of the addresses.
enum : int { kByteQ = 1, kByteK, kByteV };

template <int W>
AGLOW_INLINE int32_t packByteAttention(const ByteAttentionDesc& b, void* const* p, int64_t begin, int64_t end) {
  constexpr int64_t kPanel = 2 * W;
  const AttentionDesc& d = b.whole;
  const ByteMatrix keys{d.width, d.keys, d.k.row, 1, b.kFlip}, values{d.keys, d.valueWidth, d.v.row, 0, b.vFlip};
  AGLOW_ROLLED for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t batch = unit / d.groups, head = unit % d.groups;
    const auto* k = static_cast<const uint8_t*>(p[kByteK]) + batch * d.k.batch + head * d.k.head;
    const auto* v = static_cast<const uint8_t*>(p[kByteV]) + batch * d.v.batch + head * d.v.head;
    int32_t* to = static_cast<int32_t*>(p[d.scratch]) + unit * d.headFloats;
    AGLOW_ROLLED for (int64_t key = 0; key < d.keys; key += kPanel)
        packBytePanel<W>(keys, {b.qOffset, b.kOffset}, k, key, to + key * (byteGroups(d.width) + 1));
    AGLOW_ROLLED for (int64_t column = 0; column < d.valueWidth; column += kPanel)
        packBytePanel<W>(values, {0, b.vOffset}, v, column, to + d.valueOffset + column * (byteGroups(d.keys) + 1));
  }
  return kDone;
}

template <int W, int R>
struct ByteQueries : HeadSight<W> {
  using V = Lanes<float, W>;
  using Words = Lanes<int32_t, W>;
  using HeadSight<W>::d, HeadSight<W>::p, HeadSight<W>::batch, HeadSight<W>::head, HeadSight<W>::kHidden;
  using HeadSight<W>::lowest, HeadSight<W>::highest;
  static constexpr int64_t kPanel = 2 * W;
  static constexpr int64_t kStep = kAttentionKeys + 16;       // rows do not all meet in the same lines of the cache
  static constexpr int64_t kWords = kByteAttentionWidth / 4;  // of a query
  static constexpr int64_t kWeightStep = (kAttentionKeys + 64) / 4;

  const ByteAttentionDesc& b;
  int64_t first;  // query

  float scores[R][kStep];
  int32_t weights[R][kWeightStep];  // four in each
  int32_t queries[R][kWords];       // as unsigned bytes
  int32_t starts[R];                // of their scores
  float largest[R];
  int32_t total[R];  // of the weights
  int32_t sums[R][kByteAttentionWidth + kPanel];

  AGLOW_INLINE ByteQueries(const ByteAttentionDesc& desc, void* const* addresses, int64_t inBatch, int64_t ofHead,
                           int64_t firstQuery)
      : HeadSight<W>{desc.whole, addresses, inBatch, ofHead}, b(desc), first(firstQuery) {}

  // Four bytes, or what is left of them and zeros, as unsigned ones.
  AGLOW_INLINE int32_t someBytes(const uint8_t* from, int64_t count) const {
    if (count >= 4) return loadLanes<int32_t>(from) ^ static_cast<int32_t>(b.qFlip);
    uint32_t word = 0;
    AGLOW_ROLLED for (int64_t i = 0; i < count; ++i) word |= uint32_t{from[i]} << (8 * i);
    const uint32_t held = (uint32_t{1} << (8 * count)) - 1;
    return static_cast<int32_t>(word ^ (static_cast<uint32_t>(b.qFlip) & held));
  }

  AGLOW_INLINE void takeQueries() {
    const int64_t groups = byteGroups(d.width);
    const auto* q = static_cast<const uint8_t*>(p[kByteQ]) + batch * d.q.batch + head * d.q.head + first * d.q.row;
    AGLOW_ROLLED for (int64_t r = 0; r < R; ++r, q += d.q.row) {
      int32_t sum = 0;
      AGLOW_ROLLED for (int64_t i = 0; i < groups; ++i) {
        const int32_t word = someBytes(q + 4 * i, d.width - 4 * i);
        queries[r][i] = word;
        sum += sumBytes<1, uint8_t>(Lanes<int32_t, 1>(word))[0];
      }
      starts[r] = -static_cast<int32_t>(b.kOffset) * sum;
      largest[r] = kHidden;
      total[r] = 0;
    }
  }

  // a [R, 4 groups] * w [groups, 2 W], from what is there already.
  static AGLOW_INLINE void multiply(const int32_t* a, int64_t step, const int32_t* w, int64_t groups, Dot<W>* dot,
                                    Words (&products)[R][2]) {
    AGLOW_ROLLED for (int64_t k = 0; k < groups; ++k, w += kPanel) {
      const Words low = loadLanes<Words>(w), high = loadLanes<Words>(w + W);
      AGLOW_UNROLL for (int r = 0; r < R; ++r) {
        const Words bytes = splat<int32_t, W>(a[r * step + k]);
        products[r][0] = dot(products[r][0], bytes, low);
        products[r][1] = dot(products[r][1], bytes, high);
      }
    }
  }

  // The scores of `count` keys from `key` on, masked; the largest ones grow.
  AGLOW_INLINE void score(const int32_t* packed, int64_t key, int64_t count, Dot<W>* dot) {
    const int64_t groups = byteGroups(d.width);
    AGLOW_ROLLED for (int64_t i = 0; i < count; i += kPanel) {
      Words products[R][2];
      const int32_t* w = packed + (key + i) * (groups + 1);
      AGLOW_UNROLL for (int r = 0; r < R; ++r) AGLOW_UNROLL for (int c = 0; c < 2; ++c) products[r][c] =
          loadLanes<Words>(w + groups * kPanel + c * W) + splat<int32_t, W>(starts[r]);
      multiply(queries[0], kWords, w, groups, dot, products);
      AGLOW_UNROLL for (int r = 0; r < R; ++r) AGLOW_UNROLL for (int c = 0; c < 2; ++c)
          storeLanes(scores[r] + i + c * W, convertLanes<V>(products[r][c]));
    }
    AGLOW_ROLLED for (int64_t r = 0; r < R; ++r) {
      const float most = this->maskedRow(scores[r], first + r, key, count);
      largest[r] = most > largest[r] ? most : largest[r];
    }
  }

  // What exp makes of the scores, in steps from 0 to 255: adding this number to a small one leaves its nearest integer
  // in the lowest bits.
  AGLOW_INLINE void weigh(int64_t count) {
    constexpr float kSteps = 255, kRound = 12582912;
    AGLOW_ROLLED for (int64_t r = 0; r < R; ++r) {
      const float base = largest[r] == kHidden ? 0 : largest[r];
      Words all{};
      auto* to = reinterpret_cast<uint8_t*>(weights[r]);
      AGLOW_ROLLED for (int64_t i = 0; i < count; i += W) {
        const V share = expFlushed<W>(loadLanes<V>(scores[r] + i) - base) * kSteps;
        const Words steps = __builtin_bit_cast(Words, (share >= 0 ? share : V{}) + V(kRound)) & 255;
        storeLanes(to + i, convertLanes<Lanes<uint8_t, W>>(steps));
        all += steps;
      }
      int32_t sum = 0;
      AGLOW_UNROLL for (int lane = 0; lane < W; ++lane) sum += all[lane];
      total[r] += sum;
    }
  }

  // Adds the values of `count` keys from `key` on to the sums, of which the first ones find none.
  AGLOW_INLINE void addValues(const int32_t* packed, int64_t key, int64_t count, bool fresh, Dot<W>* dot) {
    AGLOW_ROLLED for (int64_t column = 0; column < d.valueWidth; column += kPanel) {
      Words products[R][2];
      AGLOW_UNROLL for (int r = 0; r < R; ++r) AGLOW_UNROLL for (int c = 0; c < 2; ++c) {
        const auto before = loadLanes<Words>(sums[r] + column + c * W);
        products[r][c] = fresh ? Words{} : before;
      }
      multiply(weights[0], kWeightStep, packed + column * (byteGroups(d.keys) + 1) + key / 4 * kPanel,
               byteGroups(count), dot, products);
      AGLOW_UNROLL for (int r = 0; r < R; ++r) AGLOW_UNROLL for (int c = 0; c < 2; ++c)
          storeLanes(sums[r] + column + c * W, products[r][c]);
    }
  }

  // A query that sees nothing has no weights.
  AGLOW_INLINE void finish(bool empty, Epilogue<W>* epilogue) {
    const auto scale = bitsAs<float>(b.vScale);
    AGLOW_ROLLED for (int64_t r = 0; r < R; ++r) {
      const bool hidden = empty || total[r] == 0;
      const auto whole = static_cast<float>(total[r]);
      const Words less = splat<int32_t, W>(static_cast<int32_t>(b.vOffset) * total[r]);
      AGLOW_ROLLED for (int64_t column = 0; column < d.valueWidth; column += W) {
        const V sum = convertLanes<V>(loadLanes<Words>(sums[r] + column) - less) * scale / whole;
        epilogue(hidden ? V{} : sum, p, batch, head, first + r, column, smaller(W, d.valueWidth - column));
      }
    }
  }

  AGLOW_INLINE void run(Epilogue<W>* epilogue, Dot<W>* dot) {
    const int32_t* packed =
        static_cast<const int32_t*>(p[d.scratch]) + (batch * d.groups + head / (d.heads / d.groups)) * d.headFloats;
    const int64_t begin = lowest(first) / kPanel * kPanel, end = highest(first + R - 1) + 1;
    takeQueries();
    if (end - begin > kAttentionKeys)
      AGLOW_ROLLED for (int64_t key = begin; key < end; key += kAttentionKeys)
          score(packed, key, smaller(kAttentionKeys, end - key), dot);
    AGLOW_ROLLED for (int64_t key = begin; key < end; key += kAttentionKeys) {
      const int64_t count = smaller(kAttentionKeys, end - key);
      score(packed, key, count, dot);
      weigh(count);
      addValues(packed + d.valueOffset, key, count, key == begin, dot);
    }
    finish(begin >= end, epilogue);
  }
};

template <int W, int R>
AGLOW_INLINE int32_t byteAttention(const ByteAttentionDesc& b, void* const* p, int64_t begin, int64_t end,
                                   Epilogue<W>* epilogue, Dot<W>* dot) {
  const AttentionDesc& d = b.whole;
  AGLOW_ROLLED for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t block = unit % d.blocks, head = unit / d.blocks % d.heads, batch = unit / (d.blocks * d.heads);
    const int64_t first = block * R - larger(block - d.tall, 0);
    if (d.tall == d.blocks || block < d.tall) {
      ByteQueries<W, R>(b, p, batch, head, first).run(epilogue, dot);
    } else if constexpr (R > 1) {
      ByteQueries<W, R - 1>(b, p, batch, head, first).run(epilogue, dot);
    }
  }
  return kDone;
}

}  // namespace aglow::cpu

#define AGLOW_BYTE_ATTENTION(W, R)                                                                                   \
  extern "C" int32_t aglow_byte_attention_r##R##_w##W(const aglow::cpu::ByteAttentionDesc* d, void* const* p,        \
                                                      int64_t begin, int64_t end, aglow::cpu::Epilogue<W>* epilogue, \
                                                      aglow::cpu::Dot<W>* dot) {                                     \
    return aglow::cpu::byteAttention<W, R>(*d, p, begin, end, epilogue, dot);                                        \
  }
#define AGLOW_BYTE_ATTENTION_LOW(W)                                                                         \
  extern "C" int32_t aglow_pack_byte_attention_w##W(const aglow::cpu::ByteAttentionDesc* d, void* const* p, \
                                                    int64_t begin, int64_t end) {                           \
    return aglow::cpu::packByteAttention<W>(*d, p, begin, end);                                             \
  }                                                                                                         \
  AGLOW_BYTE_ATTENTION(W, 1)                                                                                \
  AGLOW_BYTE_ATTENTION(W, 2)                                                                                \
  AGLOW_BYTE_ATTENTION(W, 3)                                                                                \
  AGLOW_BYTE_ATTENTION(W, 4)                                                                                \
  AGLOW_BYTE_ATTENTION(W, 5)                                                                                \
  AGLOW_BYTE_ATTENTION(W, 6)
#define AGLOW_BYTE_ATTENTION_HIGH(W) \
  AGLOW_BYTE_ATTENTION(W, 7)         \
  AGLOW_BYTE_ATTENTION(W, 8)         \
  AGLOW_BYTE_ATTENTION(W, 9)         \
  AGLOW_BYTE_ATTENTION(W, 10)        \
  AGLOW_BYTE_ATTENTION(W, 11)        \
  AGLOW_BYTE_ATTENTION(W, 12)        \
  AGLOW_BYTE_ATTENTION(W, 13)        \
  AGLOW_BYTE_ATTENTION(W, 14)

AGLOW_BYTE_ATTENTION_LOW(4)
AGLOW_BYTE_ATTENTION_LOW(8)
AGLOW_BYTE_ATTENTION_LOW(16)
AGLOW_BYTE_ATTENTION_HIGH(16)
