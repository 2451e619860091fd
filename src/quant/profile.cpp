#include "quant/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace aglow::quant {

namespace {

constexpr int kMantissaBits = 23, kExponentBias = 127;
constexpr uint32_t kSign = 0x80000000u, kInfinity = 0x7f800000u;

// The smallest magnitude of a step above the lowest octave.
double edge(int step) {
  const int octave = step >> Bins::kStepBits, within = step & ((1 << Bins::kStepBits) - 1);
  return std::ldexp(1 + std::ldexp(within, -Bins::kStepBits), Bins::kLowestOctave + octave);
}

}  // namespace

int Bins::of(float value) {
  constexpr int kFirst = (kExponentBias + kLowestOctave) << kStepBits;
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & ~kSign;
  if (magnitude == 0) return kZero;
  if (magnitude >= kInfinity) return kCount;
  const int step = std::clamp(static_cast<int>(magnitude >> (kMantissaBits - kStepBits)) - kFirst, 0, kSide - 1);
  return (bits & kSign) != 0 ? kZero - 1 - step : kZero + 1 + step;
}

double Bins::low(int bin) {
  if (bin == kZero) return 0;
  return bin > kZero ? edge(bin - kZero - 1) : -edge(kZero - bin);
}

double Bins::high(int bin) { return bin == kZero ? 0 : -low(2 * kZero - bin); }

// Neighbours often fall into one bin, above all into that of zero: with several tables an increment does not wait for
// the one before it.
void ValueProfile::add(std::span<const float> values) {
  constexpr size_t kTables = 4, kChunk = size_t{1} << 30;  // a count of a chunk fits 32 bits
  for (; values.size() > kChunk; values = values.subspan(kChunk)) add(values.first(kChunk));
  std::array<std::vector<uint32_t>, kTables> tables;
  for (auto& table : tables) table.resize(Bins::kCount + 1);
  size_t i = 0;
  for (; i + kTables <= values.size(); i += kTables)
    for (size_t t = 0; t < kTables; ++t) ++tables[t][static_cast<size_t>(Bins::of(values[i + t]))];
  for (; i < values.size(); ++i) ++tables[0][static_cast<size_t>(Bins::of(values[i]))];

  int64_t infinite = 0;
  for (const auto& table : tables) {
    for (size_t bin = 0; bin < counts.size(); ++bin) counts[bin] += table[bin];
    infinite += table[Bins::kCount];
  }
  notFinite += infinite;
  elements += static_cast<int64_t>(values.size()) - infinite;
  float smallest = min, largest = max;
  if (infinite == 0) {
    for (const float value : values) {
      smallest = value < smallest ? value : smallest;
      largest = largest < value ? value : largest;
    }
  } else {
    for (const float value : values) {
      if (!std::isfinite(value)) continue;
      smallest = std::min(smallest, value);
      largest = std::max(largest, value);
    }
  }
  min = smallest;
  max = largest;
}

void ValueProfile::add(const ValueProfile& other) {
  min = std::min(min, other.min);
  max = std::max(max, other.max);
  elements += other.elements;
  notFinite += other.notFinite;
  for (size_t bin = 0; bin < counts.size(); ++bin) counts[bin] += other.counts[bin];
}

Status Profile::add(const Profile& other) {
  if (samples > 0 && other.samples > 0 && model != other.model)
    return Error{.code = Code::Usage,
                 .message = fmt::format("profiles of different models cannot be joined: one is of {:016x}, the other "
                                        "of {:016x}",
                                        model, other.model)};
  if (samples == 0) model = other.model;
  samples += other.samples;
  for (const auto& [name, value] : other.values) values[name].add(value);
  return {};
}

}  // namespace aglow::quant
