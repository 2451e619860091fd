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

namespace {

// How far it is from one output, channel or tap to the next.
struct FilterSteps {
  int64_t output, channel, tap;
};

template <int64_t kTogether, class From, class To, class Convert>
void packTogether(const From* from, const FilterSteps& step, const Shape& filter, int64_t panel, To* all,
                  Convert convert) {
  const int64_t outputs = filter[0], channels = filter[1], taps = filter[2] * filter[3];
  const int64_t groups = ceilDiv(channels, kTogether);
  eachPanel(ceilDiv(outputs, panel), [&](int64_t p) {
    To* to = all + p * taps * groups * panel * kTogether;
    const int64_t first = p * panel, count = std::min(panel, outputs - first);
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t o = 0; o < count; ++o)
          to[((tap * groups + c / kTogether) * panel + o) * kTogether + c % kTogether] =
              convert(from[(first + o) * step.output + c * step.channel + tap * step.tap]);
  });
}

// Of a filter [outputs, channels, kernel height, kernel width] whose elements lie as `step` says.
Tensor packNarrow(const Tensor& weights, const FilterSteps& step, const Shape& filter, int64_t panel) {
  constexpr int64_t kBytes = 4, kHalves = 2;
  const bool bytes = weights.type().kind() == ElemKind::Int32;
  AGLOW_CHECK(bytes || weights.type().kind() == ElemKind::Float32, "cannot pack " + weights.type().text());
  const int64_t together = bytes ? kBytes : kHalves;
  Tensor packed(
      Type(bytes ? ElemKind::Int8 : ElemKind::BFloat16,
           Shape{ceilDiv(filter[0], panel), filter[2], filter[3], ceilDiv(filter[1], together), panel, together}));
  if (bytes) {
    packTogether<kBytes>(weights.ref().as<const int32_t>(), step, filter, panel,
                         reinterpret_cast<int8_t*>(packed.mutableData()),
                         [](int32_t value) { return static_cast<int8_t>(value); });
  } else {
    constexpr int kUpperHalf = 16;
    packTogether<kHalves>(weights.ref().as<const uint32_t>(), step, filter, panel,
                          reinterpret_cast<uint16_t*>(packed.mutableData()),
                          [](uint32_t bits) { return static_cast<uint16_t>(bits >> kUpperHalf); });
  }
  return packed;
}

}  // namespace

Tensor packNarrowFilter(const Tensor& filter, int64_t panel) {
  const Shape& shape = filter.type().shape();
  AGLOW_CHECK(shape.rank() == 4, "cannot pack " + filter.type().text());
  const int64_t taps = shape[2] * shape[3];
  return packNarrow(filter, {.output = shape[1] * taps, .channel = taps, .tap = 1}, shape, panel);
}

// The columns of a matrix are the outputs of a filter with one tap.
Tensor packNarrowMatrix(const Tensor& b, int64_t panel) {
  const int64_t k = b.type().dim(0), n = b.type().dim(1);
  const Tensor packed = packNarrow(b, {.output = 1, .channel = n, .tap = 0}, Shape{n, k, 1, 1}, panel);
  const Shape& shape = packed.type().shape();
  return packed.retyped(packed.type().withShape(Shape{shape[0], shape[3], shape[4], shape[5]}));
}

Tensor packLevels(const Tensor& levels, int64_t bits, int64_t panel) {
  constexpr int64_t kWordBits = 32, kByteBits = 8, kWordBytes = 4;
  const Type& type = levels.type();
  AGLOW_CHECK(type.kind() == ElemKind::UInt8 && type.rank() == 2, "cannot pack " + type.text());
  const int64_t k = type.dim(0), n = type.dim(1), words = ceilDiv(k * bits, kWordBits);
  Tensor packed(Type(ElemKind::UInt8, Shape{ceilDiv(n, panel), words, panel, kWordBytes}));
  const auto* from = levels.ref().as<const uint8_t>();
  auto* to = reinterpret_cast<uint8_t*>(packed.mutableData());
  eachPanel(ceilDiv(n, panel), [&](int64_t p) {
    for (int64_t c = 0; c < k; ++c)
      for (int64_t j = p * panel; j < std::min((p + 1) * panel, n); ++j) {
        const int64_t word = (p * words + c * bits / kWordBits) * panel + j % panel, bit = c * bits % kWordBits;
        uint8_t& byte = to[word * kWordBytes + bit / kByteBits];
        byte = static_cast<uint8_t>(byte | from[c * n + j] << bit % kByteBits);
      }
  });
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

}  // namespace aglow::cpu
