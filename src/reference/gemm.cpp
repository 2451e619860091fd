// Matrix products.
#include <algorithm>

#include "reference/arithmetic.h"
#include "reference/reference.h"

namespace aglow::reference {

namespace {

// y += x * rows, for `depth` rows one after the other; four at a time, so that y is loaded and stored less often.
template <class D>
void addProducts(const D* __restrict x, const D* __restrict rows, int64_t depth, int64_t width, D* __restrict y) {
  int64_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    const D x0 = x[k], x1 = x[k + 1], x2 = x[k + 2], x3 = x[k + 3];
    const D* r0 = rows + k * width;
    const D* r1 = r0 + width;
    const D* r2 = r1 + width;
    const D* r3 = r2 + width;
    for (int64_t j = 0; j < width; ++j) y[j] = y[j] + x0 * r0[j] + x1 * r1[j] + x2 * r2[j] + x3 * r3[j];
  }
  for (; k < depth; ++k)
    for (int64_t j = 0; j < width; ++j) y[j] += x[k] * rows[k * width + j];
}

// One matrix by another. The right one is widened in panels that stay in the cache, so that large weights do not exist
// twice.
template <class D>
void multiply(ElemKind kind, const std::byte* a, int64_t aFirst, const std::byte* b, int64_t bFirst, int64_t m,
              int64_t k, int64_t n, std::vector<D>& y) {
  constexpr int64_t kPanel = 1 << 15;
  std::fill(y.begin(), y.end(), D{0});
  const int64_t depth = std::clamp<int64_t>(kPanel / std::max<int64_t>(n, 1), 4, std::max<int64_t>(k, 4));
  std::vector<D> panel(static_cast<size_t>(depth * n));
  std::vector<D> row(static_cast<size_t>(depth));
  for (int64_t top = 0; top < k; top += depth) {
    const int64_t rows = std::min(depth, k - top);
    widen(kind, b, bFirst + top * n, rows * n, 1, panel.data());
    for (int64_t i = 0; i < m; ++i) {
      widen(kind, a, aFirst + i * k + top, rows, 1, row.data());
      addProducts(row.data(), panel.data(), rows, n, y.data() + i * n);
    }
  }
}

// Calls each(item, a, b) with the numbers of the matrices that make up each one of the results.
template <class Each>
void eachMatrix(const KernelCall& call, const Each& each) {
  const auto leading = [](const Shape& s) { return Shape(std::vector(s.dims().begin(), s.dims().end() - 2)); };
  const Shape batch = leading(call.outType().shape());
  const std::vector<int64_t> aStrides = broadcastStrides(leading(call.inType(0).shape()), batch);
  const std::vector<int64_t> bStrides = broadcastStrides(leading(call.inType(1).shape()), batch);
  for (int64_t item = 0; item < batch.elements(); ++item) {
    int64_t aItem = 0;
    int64_t bItem = 0;
    for (int64_t axis = batch.rank() - 1, rest = item; axis >= 0; --axis) {
      const int64_t extent = batch[static_cast<int>(axis)];
      aItem += rest % extent * aStrides[static_cast<size_t>(axis)];
      bItem += rest % extent * bStrides[static_cast<size_t>(axis)];
      rest /= extent;
    }
    each(item, aItem, bItem);
  }
}

}  // namespace

Status matMul(const KernelCall& call) {
  const Shape& a = call.inType(0).shape();
  const Shape& y = call.outType().shape();
  const ElemKind kind = call.outType().kind();
  const int64_t m = y[y.rank() - 2];
  const int64_t n = y[y.rank() - 1];
  const int64_t k = a[a.rank() - 1];
  if (y.elements() == 0) return {};

  inWrappingDomain(kind, [&](auto zero) {
    std::vector<decltype(zero)> product(static_cast<size_t>(m * n));
    eachMatrix(call, [&](int64_t item, int64_t aItem, int64_t bItem) {
      multiply(kind, call.inData(0), aItem * m * k, call.inData(1), bItem * k * n, m, k, n, product);
      narrow(kind, product.data(), m * n, call.outData(), item * m * n);
    });
  });
  return {};
}

namespace {

// Sums wrap, as those of i32 do.
template <class A, class B>
void multiplyBytes(const KernelCall& call) {
  const Shape &a = call.inType(0).shape(), &y = call.outType().shape();
  const int64_t m = y[y.rank() - 2], n = y[y.rank() - 1], k = a[a.rank() - 1];
  const auto aOffset = static_cast<int32_t>(call.attrs.integer("a_offset")),
             bOffset = static_cast<int32_t>(call.attrs.integer("b_offset"));
  const bool transposed = call.attrs.flag("transposed");
  const int64_t depth = transposed ? 1 : n, column = transposed ? k : 1;  // distances in b
  eachMatrix(call, [&](int64_t item, int64_t aItem, int64_t bItem) {
    const auto* left = call.in[0].as<A>() + aItem * m * k;
    const auto* right = call.in[1].as<B>() + bItem * k * n;
    for (int64_t i = 0; i < m * n; ++i) {
      uint32_t sum = 0;
      for (int64_t c = 0; c < k; ++c)
        sum += static_cast<uint32_t>((left[i / n * k + c] - aOffset) * (right[c * depth + i % n * column] - bOffset));
      call.out[0].as<int32_t>()[item * m * n + i] = static_cast<int32_t>(sum);
    }
  });
}

}  // namespace

Status byteMatMul(const KernelCall& call) {
  const auto byLeft = [&]<class B>(B /*right*/) {
    if (call.inType(0).kind() == ElemKind::UInt8)
      multiplyBytes<uint8_t, B>(call);
    else
      multiplyBytes<int8_t, B>(call);
  };
  if (call.inType(1).kind() == ElemKind::UInt8)
    byLeft(uint8_t{});
  else
    byLeft(int8_t{});
  return {};
}

}  // namespace aglow::reference
