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

Tensor packByteFilter(const Tensor& filter, int64_t panel) {
  constexpr int64_t kFour = 4;
  const Type& type = filter.type();
  AGLOW_CHECK(type.kind() == ElemKind::Int32 && type.rank() == 4, "cannot pack bytes of " + type.text());
  const int64_t outputs = type.dim(0), channels = type.dim(1), taps = type.dim(2) * type.dim(3);
  const int64_t fours = ceilDiv(channels, kFour);
  Tensor packed(Type(ElemKind::Int8, Shape{ceilDiv(outputs, panel), type.dim(2), type.dim(3), fours, panel, kFour}));
  const auto* from = filter.ref().as<const int32_t>();
  auto* to = reinterpret_cast<int8_t*>(packed.mutableData());
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t place = ((o / panel * taps + tap) * fours + c / kFour) * panel + o % panel;
        to[place * kFour + c % kFour] = static_cast<int8_t>(from[(o * channels + c) * taps + tap]);
      }
  return packed;
}

Tensor packByteDepthwise(const Tensor& filter, int64_t lanes) {
  const Type& type = filter.type();
  AGLOW_CHECK(type.kind() == ElemKind::Int32 && type.rank() == 4 && type.dim(1) == 1,
              "cannot pack bytes of " + type.text());
  const int64_t taps = type.dim(2) * type.dim(3);
  Tensor packed(Type(ElemKind::Int8, Shape{ceilDiv(type.dim(0), lanes), type.dim(2), type.dim(3), lanes}));
  const auto* from = filter.ref().as<const int32_t>();
  auto* to = reinterpret_cast<int8_t*>(packed.mutableData());
  for (int64_t c = 0; c < type.dim(0); ++c)
    for (int64_t tap = 0; tap < taps; ++tap)
      to[(c / lanes * taps + tap) * lanes + c % lanes] = static_cast<int8_t>(from[c * taps + tap]);
  return packed;
}

// The columns of a matrix are the outputs of a filter with one tap.
Tensor packByteMatrix(const Tensor& b, int64_t panel) {
  const int64_t k = b.type().dim(0), n = b.type().dim(1);
  Tensor turned(Type(ElemKind::Int32, Shape{n, k, 1, 1}));
  const auto* from = b.ref().as<const int32_t>();
  auto* to = reinterpret_cast<int32_t*>(turned.mutableData());
  for (int64_t row = 0; row < k; ++row)
    for (int64_t column = 0; column < n; ++column) to[column * k + row] = from[row * n + column];
  const Tensor packed = packByteFilter(turned, panel);
  const Shape& shape = packed.type().shape();
  return packed.retyped(packed.type().withShape(Shape{shape[0], shape[3], shape[4], shape[5]}));
}

}  // namespace aglow::cpu
