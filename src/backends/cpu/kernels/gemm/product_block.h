// The product that general matrix products and convolutions share: a block of rows by a block of columns, in a compute
// type C on vectors of L lanes. The right side is packed panel by panel into C; the left one is read element by
// element, each of which serves a whole row of the panel.
#pragma once

#include "backends/cpu/kernels/gemm/general_desc.h"
#include "backends/cpu/kernels/math/lanes.h"
#include "backends/cpu/kernels/vectors.h"

namespace aglow::cpu {

// What sums are held in between panels: long sums of f32 would lose digits.
template <class C>
struct HeldIn {
  using Type = C;
};
template <>
struct HeldIn<float> {
  using Type = double;
};
template <class C>
using Held = typename HeldIn<C>::Type;

template <class C>
struct alignas(64) ProductBlock {
  Held<C> held[kProductRows][kProductCols];
  C panel[kProductDepth][kProductCols];
};

// R rows by N vectors stay in registers over the panel's depth, and join what is held after it.
template <class C, int L, int R, int N, class Left>
[[gnu::always_inline]] inline void multiplyTile(ProductBlock<C>& block, int64_t row, int64_t col, int64_t first,
                                                int64_t depth, Left left) {
  using V = Lanes<C, L>;
  using Total = Lanes<Held<C>, L>;
  V held[R][N];
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) held[r][n] = V{};
  for (int64_t k = 0; k < depth; ++k) {
    V right[N];
    for (int n = 0; n < N; ++n) right[n] = loadLanes<V>(&block.panel[k][col + n * L]);
    for (int r = 0; r < R; ++r) {
      const V factor = splat<C, L>(left(row + r, first + k));
      for (int n = 0; n < N; ++n) held[r][n] = factor * right[n] + held[r][n];
    }
  }
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) {
      Held<C>* to = &block.held[row + r][col + n * L];
      storeLanes(to, loadLanes<Total>(to) + convertLanes<Total>(held[r][n]));
    }
}

template <class C, int L, int R, class Left>
[[gnu::always_inline]] inline void multiplyRows(ProductBlock<C>& block, int64_t row, int64_t cols, int64_t first,
                                                int64_t depth, Left left) {
  constexpr int kN = L == 64 / sizeof(C) ? 4 : 2;
  int64_t col = 0;
  for (; col + kN * L <= cols; col += kN * L) multiplyTile<C, L, R, kN>(block, row, col, first, depth, left);
  for (; col < cols; col += L) multiplyTile<C, L, R, 1>(block, row, col, first, depth, left);
}

// held += left * right: left(row, k) is an element, pack(first, depth, panel) puts rows of the right side into the
// panel, up to `cols` columns each.
template <class C, int L, class Left, class Pack>
[[gnu::always_inline]] inline void multiplyBlock(ProductBlock<C>& block, int64_t rows, int64_t cols, int64_t depth,
                                                 Left left, Pack pack) {
  for (int64_t k = 0; k < least(depth, kProductDepth); ++k)
    for (int64_t c = cols; c % L != 0; ++c) block.panel[k][c] = 0;
  for (int64_t first = 0; first < depth; first += kProductDepth) {
    const int64_t count = least(depth - first, kProductDepth);
    pack(first, count, block.panel);
    int64_t row = 0;
    for (; row + 4 <= rows; row += 4) multiplyRows<C, L, 4>(block, row, cols, first, count, left);
    for (; row < rows; ++row) multiplyRows<C, L, 1>(block, row, cols, first, count, left);
  }
}

// Every element of the block set before, columns up to the last vector included.
template <class C, int L, class Start>
[[gnu::always_inline]] inline void startBlock(ProductBlock<C>& block, int64_t rows, int64_t cols, Start start) {
  for (int64_t r = 0; r < rows; ++r) {
    const Lanes<Held<C>, L> value = splat<Held<C>, L>(start(r));
    for (int64_t c = 0; c < cols; c += L) storeLanes(&block.held[r][c], value);
  }
}

}  // namespace aglow::cpu
