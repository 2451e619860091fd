// Matrix products of every kind of elements.
#include "backends/cpu/kernels/gemm/product_block.h"
#include "backends/cpu/kernels/kinds.h"

namespace aglow::cpu {

namespace {

// D is what elements are read as, C what they are multiplied in.
template <class D, class C, int L>
[[gnu::always_inline]] inline int32_t matMulItems(const MatMulDesc* d, void* const* p, int64_t begin, int64_t end,
                                                  Load<D>* load, Store<D>* store) {
  const void* left = p[d->left];
  const void* right = p[d->right];
  const int64_t axes = d->blocks.rank;
  const int64_t last = d->items.first(end);
  int64_t item = d->items.first(begin);
  ProductBlock<C> block;
  Walk<3> walk(d->blocks, item);
  for (; item < last; ++item, walk.next()) {
    const int64_t rows = least(d->rows - walk.index[axes - 2] * kProductRows, kProductRows);
    const int64_t cols = least(d->cols - walk.index[axes - 1] * kProductCols, kProductCols);
    const int64_t leftFirst = walk.offset[0];
    const int64_t rightFirst = walk.offset[1];
    startBlock<C, L>(block, rows, cols, [](int64_t) { return C{0}; });
    multiplyBlock<C, L>(
        block, rows, cols, d->depth,
        [&](int64_t row, int64_t k) {
          return static_cast<C>(load(left, leftFirst + row * d->leftRow + k * d->leftDepth));
        },
        [&](int64_t first, int64_t count, C(&panel)[kProductDepth][kProductCols]) {
          for (int64_t k = 0; k < count; ++k)
            for (int64_t c = 0; c < cols; ++c)
              panel[k][c] = static_cast<C>(load(right, rightFirst + (first + k) * d->rightDepth + c * d->rightCol));
        });
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c)
        store(p[0], walk.offset[2] + r * d->resultRow + c * d->resultCol, static_cast<D>(block.held[r][c]));
  }
  return kDone;
}

}  // namespace

AGLOW_KERNEL_OF_VECTORS(matmul, MatMulDesc, matMulItems)

}  // namespace aglow::cpu
