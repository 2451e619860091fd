#include "quant/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/suggest.h"

namespace aglow::quant {

namespace {

using enum ElemKind;

constexpr Schema kSchemas[] = {
    {"asymmetric", "u8 with an offset", UInt8, UInt8, false, false},
    {"symmetric", "i8 without offset", Int8, Int8, true, false},
    {"symmetric-uint8", "i8 without offset, and u8 for values that are never negative", Int8, UInt8, true, false},
    {"power-of-two", "i8 without offset, and scales that are powers of two", Int8, Int8, true, true},
    {"symmetric-int16", "i16 without offset; weights stay i8", Int16, Int16, true, false},
};

struct Ends {
  double low, high;
};
Ends endsOf(ElemKind kind) {
  const int bits = elemInfo(kind).bits;
  if (isUnsigned(kind)) return {0, std::ldexp(1.0, bits) - 1};
  return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1};
}

// A step of a range as a scale: a normal number, and a power of two where that is asked for.
float safeScale(double step, bool powerOfTwo) {
  if (!(step > 0)) return 1;
  if (powerOfTwo) step = std::exp2(std::ceil(std::log2(step)));
  step = std::clamp<double>(step, std::numeric_limits<float>::min(), std::numeric_limits<float>::max());
  return static_cast<float>(step);
}

}  // namespace

std::span<const Schema> schemas() { return kSchemas; }

Result<const Schema*> findSchema(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Schema& schema : kSchemas) {
    if (schema.name == name) return &schema;
    names.push_back(schema.name);
  }
  std::string hint = didYouMean(name, names);
  if (hint.empty()) hint = fmt::format("there are: {}", fmt::join(names, ", "));
  return Error{.code = Code::Usage, .message = fmt::format("there is no schema '{}'", name), .where = {}, .hint = hint};
}

int levelsOf(const Schema& schema) { return 1 << elemInfo(schema.kind).bits; }

Parameters parametersFor(const Range& range, const Schema& schema) {
  const double low = std::min(range.low, 0.0), high = std::max(range.high, 0.0);
  Parameters chosen{.kind = low < 0 ? schema.kind : schema.neverBelow0};
  const Ends ends = endsOf(chosen.kind);
  if (schema.symmetric) {
    chosen.scale = safeScale(std::max(-low, high) / ends.high, schema.powerOfTwo);
    return chosen;
  }
  chosen.scale = safeScale((high - low) / (ends.high - ends.low), schema.powerOfTwo);
  const double offset = std::nearbyint(ends.low - low / static_cast<double>(chosen.scale));
  chosen.offset = static_cast<int64_t>(std::clamp(offset, ends.low, ends.high));
  return chosen;
}

Range rangeOf(const Parameters& parameters) {
  const Ends ends = endsOf(parameters.kind);
  const auto offset = static_cast<double>(parameters.offset), scale = static_cast<double>(parameters.scale);
  return {(ends.low - offset) * scale, (ends.high - offset) * scale};
}

Weights quantizeWeights(const Tensor& weights, int axis, const Schema& schema, std::span<const double> least) {
  constexpr double kMost = 127;
  const Shape& shape = weights.type().shape();
  const int64_t channels = shape[axis], inner = shape.strides()[static_cast<size_t>(axis)];
  const auto* values = weights.ref().as<const float>();
  const auto channelOf = [&](int64_t i) { return static_cast<size_t>(i / inner % channels); };
  std::vector<double> largest(static_cast<size_t>(channels));
  for (int64_t i = 0; i < shape.elements(); ++i)
    if (const double size = std::abs(static_cast<double>(values[i])); std::isfinite(size))
      largest[channelOf(i)] = std::max(largest[channelOf(i)], size);
  Weights quantized{Tensor(Type(Int8, shape)), {}};
  for (size_t c = 0; c < largest.size(); ++c) {
    double step = largest[c] / kMost;
    if (!least.empty()) step = std::max(step, least[c]);
    quantized.scales.push_back(safeScale(step, schema.powerOfTwo));
  }
  auto* integers = reinterpret_cast<int8_t*>(quantized.integers.mutableData());
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const double q =
        std::nearbyint(static_cast<double>(values[i]) / static_cast<double>(quantized.scales[channelOf(i)]));
    integers[i] = static_cast<int8_t>(std::isnan(q) ? 0 : std::clamp(q, -kMost, kMost));
  }
  return quantized;
}

bool isFinite(const Tensor& weights) {
  const auto* from = weights.ref().as<const float>();
  return std::all_of(from, from + weights.type().elements(), [](float value) { return std::isfinite(value); });
}

Tensor quantizeBias(const Tensor& bias, std::span<const float> scales) {
  const auto* values = bias.ref().as<const float>();
  std::vector<int64_t> integers(static_cast<size_t>(bias.type().elements()));
  const Ends ends = endsOf(Int32);
  for (size_t i = 0; i < integers.size(); ++i) {
    const double q = std::nearbyint(static_cast<double>(values[i]) / static_cast<double>(scales[i % scales.size()]));
    integers[i] = static_cast<int64_t>(std::isnan(q) ? 0 : std::clamp(q, ends.low, ends.high));
  }
  return Tensor::fromInts(Type(Int32, bias.type().shape()), integers);
}

}  // namespace aglow::quant
