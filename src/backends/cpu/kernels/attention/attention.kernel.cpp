// Attention without a matrix of scores: a unit takes a few queries of a head past all keys, some keys at a time, and
// corrects what it has summed up whenever the largest score grows. Keys that the window hides from all queries of a
// unit are not read at all.
#include "backends/cpu/kernels/attention/sight.h"
#include "backends/cpu/kernels/math/exp_log_f32.h"

namespace aglow::cpu {

// ---------------------------------------------------------------- packing

// Rows [count, depth] that lie `step` apart become [depth, 2 W], with zeros after the last one.
template <int W>
AGLOW_INLINE void packTransposed(const float* from, int64_t step, int64_t count, int64_t depth, float* to) {
  using V = Lanes<float, W>;
  constexpr int64_t kPanel = 2 * W;
  AGLOW_ROLLED for (int64_t first = 0; first < kPanel; first += W) {
    int64_t k = 0;
    if (first + W <= count) AGLOW_ROLLED for (; k + W <= depth; k += W) {
        V rows[W];
        AGLOW_UNROLL for (int i = 0; i < W; ++i) rows[i] = loadLanes<V>(from + (first + i) * step + k);
        transposeLanes<float, W>(rows);
        AGLOW_UNROLL for (int i = 0; i < W; ++i) storeLanes(to + (k + i) * kPanel + first, rows[i]);
      }
    AGLOW_ROLLED for (; k < depth; ++k) AGLOW_ROLLED for (int64_t i = first; i < first + W; ++i) to[k * kPanel + i] =
        i < count ? from[i * step + k] : 0;
  }
}

// Columns [depth, count] of rows that lie `step` apart become [depth, 2 W].
template <int W>
AGLOW_INLINE void packColumns(const float* from, int64_t step, int64_t count, int64_t depth, float* to) {
  AGLOW_ROLLED for (int64_t k = 0; k < depth; ++k, from += step, to += 2 * W) {
    storeLanes(to, loadSome<W>(from, smaller(W, count)));
    storeLanes(to + W, loadSome<W>(from + W, larger(0, smaller(W, count - W))));
  }
}

template <int W>
AGLOW_INLINE int32_t packAttention(const AttentionDesc& d, void* const* p, int64_t begin, int64_t end) {
  constexpr int64_t kPanel = 2 * W;
  AGLOW_ROLLED for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t batch = unit / d.groups, head = unit % d.groups;
    const float* k = static_cast<const float*>(p[3]) + batch * d.k.batch + head * d.k.head;
    const float* v = static_cast<const float*>(p[4]) + batch * d.v.batch + head * d.v.head;
    float* to = static_cast<float*>(p[d.scratch]) + unit * d.headFloats;
    AGLOW_ROLLED for (int64_t key = 0; key < d.keys; key += kPanel)
        packTransposed<W>(k + key * d.k.row, d.k.row, smaller(kPanel, d.keys - key), d.width, to + key * d.width);
    AGLOW_ROLLED for (int64_t column = 0; column < d.valueWidth; column += kPanel) packColumns<W>(
        v + column, d.v.row, smaller(kPanel, d.valueWidth - column), d.keys, to + d.valueOffset + column * d.keys);
  }
  return kDone;
}

// ---------------------------------------------------------------- queries

// a [R, depth] * b [depth, 2 W].
template <int W, int R>
AGLOW_INLINE void multiplyPanel(const float* a, int64_t step, const float* b, int64_t depth,
                                Lanes<float, W> (&sums)[R][2]) {
  using V = Lanes<float, W>;
  V parts[R][2];
  AGLOW_UNROLL for (int r = 0; r < R; ++r) AGLOW_UNROLL for (int c = 0; c < 2; ++c) parts[r][c] = V{};
  AGLOW_ROLLED for (int64_t k = 0; k < depth; ++k, b += 2 * W) {
    const V low = loadLanes<V>(b), high = loadLanes<V>(b + W);
    AGLOW_UNROLL for (int r = 0; r < R; ++r) {
      const V value = splat<float, W>(a[r * step + k]);
      parts[r][0] = value * low + parts[r][0];
      parts[r][1] = value * high + parts[r][1];
    }
  }
  AGLOW_UNROLL for (int r = 0; r < R; ++r) AGLOW_UNROLL for (int c = 0; c < 2; ++c) sums[r][c] = parts[r][c];
}

template <int W, int R>
struct Queries : HeadSight<W> {
  using V = Lanes<float, W>;
  using HeadSight<W>::d, HeadSight<W>::p, HeadSight<W>::batch, HeadSight<W>::head, HeadSight<W>::kHidden;
  using HeadSight<W>::lowest, HeadSight<W>::highest, HeadSight<W>::sees;
  static constexpr int64_t kStep = kAttentionKeys + 16;  // rows do not all meet in the same lines of the cache

  int64_t first;  // query

  float scores[R][kStep];
  float largest[R], sum[R];

  AGLOW_INLINE Queries(const AttentionDesc& desc, void* const* addresses, int64_t inBatch, int64_t ofHead,
                       int64_t firstQuery)
      : HeadSight<W>{desc, addresses, inBatch, ofHead}, first(firstQuery) {}

  // One row of scores of the keys from `key` on: scaled, masked, and then as exponentials of their distance to the
  // largest one so far. Returns what corrects earlier sums.
  AGLOW_INLINE float weigh(int64_t r, int64_t key, int64_t count) {
    float* row = scores[r];
    const float inBlock = this->maskedRow(row, first + r, key, count);
    const float before = largest[r], now = inBlock > before ? inBlock : before;
    largest[r] = now;
    // Nothing seen yet: every exponential is zero.
    const float base = now == kHidden ? 0 : now;
    V total{};
    AGLOW_ROLLED for (int64_t j = 0; j < count; j += W) {
      const V weight = expFlushed<W>(loadLanes<V>(row + j) - base);
      storeLanes(row + j, weight);
      total += weight;
    }
    const float correction = expFlushed<4>(Lanes<float, 4>(before - base))[0];
    sum[r] = sum[r] * correction + foldLanes<1, W>(total)[0];
    return correction;
  }

  AGLOW_INLINE float* yRow(int64_t r) const {
    return static_cast<float*>(p[0]) + batch * d.y.batch + head * d.y.head + (first + r) * d.y.row;
  }

  // y = y * factors + scores * v for `count` keys; the first ones find nothing in y. Sums pass through memory, so that
  // what is done to each of them appears once in the code.
  AGLOW_INLINE void addValues(const float* v, int64_t count, const float (&factors)[R], bool fresh) {
    AGLOW_ROLLED for (int64_t column = 0; column < d.valueWidth; column += 2 * W) {
      V sums[R][2];
      const int64_t low = smaller(W, d.valueWidth - column), high = larger(0, smaller(W, d.valueWidth - column - W));
      multiplyPanel<W, R>(scores[0], kStep, v + column * d.keys, count, sums);
      AGLOW_ROLLED for (int64_t r = 0; r < R; ++r) {
        float* row = yRow(r) + column;
        if (!fresh) {
          sums[r][0] = loadSome<W>(row, low) * factors[r] + sums[r][0];
          sums[r][1] = loadSome<W>(row + W, high) * factors[r] + sums[r][1];
        }
        storeSome<W>(row, sums[r][0], low);
        storeSome<W>(row + W, sums[r][1], high);
      }
    }
  }

  // What lies between the sums and the result: their own sum, and queries that see nothing.
  AGLOW_INLINE void finish(bool empty) {
    AGLOW_ROLLED for (int64_t r = 0; r < R; ++r) {
      const bool hidden = empty || (!(sum[r] > 0) && !sees(first + r));
      const float factor = 1 / sum[r];
      float* row = yRow(r);
      int64_t i = 0;
      AGLOW_ROLLED for (; i + W <= d.valueWidth; i += W)
          storeLanes(row + i, hidden ? V{} : loadLanes<V>(row + i) * factor);
      AGLOW_ROLLED for (; i < d.valueWidth; ++i) row[i] = hidden ? 0 : row[i] * factor;
    }
  }

  AGLOW_INLINE void run() {
    constexpr int64_t kPanel = 2 * W;
    const float* q = static_cast<const float*>(p[2]) + batch * d.q.batch + head * d.q.head + first * d.q.row;
    const float* packed =
        static_cast<const float*>(p[d.scratch]) + (batch * d.groups + head / (d.heads / d.groups)) * d.headFloats;
    AGLOW_UNROLL for (int r = 0; r < R; ++r) {
      largest[r] = kHidden;
      sum[r] = 0;
    }
    const int64_t begin = lowest(first) / kPanel * kPanel, end = highest(first + R - 1) + 1;
    AGLOW_ROLLED for (int64_t key = begin; key < end; key += kAttentionKeys) {
      const int64_t count = smaller(kAttentionKeys, end - key);
      AGLOW_ROLLED for (int64_t i = 0; i < count; i += kPanel) {
        V sums[R][2];
        multiplyPanel<W, R>(q, d.q.row, packed + (key + i) * d.width, d.width, sums);
        AGLOW_UNROLL for (int r = 0; r < R; ++r) AGLOW_UNROLL for (int c = 0; c < 2; ++c)
            storeLanes(scores[r] + i + c * W, sums[r][c]);
      }
      float factors[R];
      AGLOW_ROLLED for (int64_t r = 0; r < R; ++r) factors[r] = weigh(r, key, count);
      addValues(packed + d.valueOffset + key * kPanel, count, factors, key == begin);
    }
    finish(begin >= end);
  }
};

template <int W, int R>
AGLOW_INLINE int32_t attention(const AttentionDesc& d, void* const* p, int64_t begin, int64_t end) {
  AGLOW_ROLLED for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t block = unit % d.blocks, head = unit / d.blocks % d.heads, batch = unit / (d.blocks * d.heads);
    const int64_t first = block * R - larger(block - d.tall, 0);
    if (d.tall == d.blocks || block < d.tall) {
      Queries<W, R>(d, p, batch, head, first).run();
    } else if constexpr (R > 1) {
      Queries<W, R - 1>(d, p, batch, head, first).run();
    }
  }
  return kDone;
}

}  // namespace aglow::cpu

#define AGLOW_ATTENTION(W, R)                                                                                       \
  extern "C" int32_t aglow_attention_r##R##_w##W(const aglow::cpu::AttentionDesc* d, void* const* p, int64_t begin, \
                                                 int64_t end) {                                                     \
    return aglow::cpu::attention<W, R>(*d, p, begin, end);                                                          \
  }
#define AGLOW_ATTENTION_LOW(W)                                                                                    \
  extern "C" int32_t aglow_pack_attention_w##W(const aglow::cpu::AttentionDesc* d, void* const* p, int64_t begin, \
                                               int64_t end) {                                                     \
    return aglow::cpu::packAttention<W>(*d, p, begin, end);                                                       \
  }                                                                                                               \
  AGLOW_ATTENTION(W, 1)                                                                                           \
  AGLOW_ATTENTION(W, 2)                                                                                           \
  AGLOW_ATTENTION(W, 3)                                                                                           \
  AGLOW_ATTENTION(W, 4)                                                                                           \
  AGLOW_ATTENTION(W, 5)                                                                                           \
  AGLOW_ATTENTION(W, 6)
#define AGLOW_ATTENTION_HIGH(W) \
  AGLOW_ATTENTION(W, 7)         \
  AGLOW_ATTENTION(W, 8)         \
  AGLOW_ATTENTION(W, 9)         \
  AGLOW_ATTENTION(W, 10)        \
  AGLOW_ATTENTION(W, 11)        \
  AGLOW_ATTENTION(W, 12)        \
  AGLOW_ATTENTION(W, 13)        \
  AGLOW_ATTENTION(W, 14)

AGLOW_ATTENTION_LOW(4)
AGLOW_ATTENTION_LOW(8)
AGLOW_ATTENTION_LOW(16)
AGLOW_ATTENTION_HIGH(16)
