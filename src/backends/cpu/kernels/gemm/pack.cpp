// Packing: every element of the source goes to its place in a zeroed result.
#include "backends/cpu/kernels/gemm/pack.h"

#include <algorithm>

#include "support/sizes.h"
#include "support/thread_pool.h"

namespace aglow::cpu {

namespace {

const float* floats(const Tensor& t, int rank) {
  AGLOW_CHECK(t.type().kind() == ElemKind::Float32 && t.type().rank() == rank, "cannot pack " + t.type().text());
  return t.ref().as<const float>();
}

Tensor zeros(std::vector<int64_t> dims) { return Tensor(Type(ElemKind::Float32, Shape(std::move(dims)))); }

}  // namespace

void eachPanel(int64_t panels, const std::function<void(int64_t panel)>& pack) {
  ThreadPool::ofProcess(1)->run({.units = panels}, [&](int, int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) pack(panel);
    return 0;
  });
}

Tensor packMatrix(const Tensor& b, int64_t panel) {
  const float* from = floats(b, 2);
  const int64_t k = b.type().dim(0), n = b.type().dim(1);
  Tensor packed = zeros({ceilDiv(n, panel), k, panel});
  auto* to = reinterpret_cast<float*>(packed.mutableData());
  eachPanel(ceilDiv(n, panel), [&](int64_t p) {
    const int64_t first = p * panel, count = std::min(panel, n - first);
    for (int64_t row = 0; row < k; ++row) std::copy_n(from + row * n + first, count, to + (p * k + row) * panel);
  });
  return packed;
}

Tensor packFilter(const Tensor& filter, int64_t panel) {
  const float* from = floats(filter, 4);
  const Shape& shape = filter.type().shape();
  const int64_t outputs = shape[0], channels = shape[1], taps = shape[2] * shape[3];
  Tensor packed = zeros({ceilDiv(outputs, panel), shape[2], shape[3], channels, panel});
  auto* all = reinterpret_cast<float*>(packed.mutableData());
  eachPanel(ceilDiv(outputs, panel), [&](int64_t p) {
    const int64_t first = p * panel, count = std::min(panel, outputs - first);
    float* to = all + p * taps * channels * panel;
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t o = 0; o < count; ++o)
          to[(tap * channels + c) * panel + o] = from[((first + o) * channels + c) * taps + tap];
  });
  return packed;
}

}  // namespace aglow::cpu
