#include "quant/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace aglow::quant {

namespace {

// The smallest magnitude of a step above the lowest octave.
double edge(int step) {
  const int octave = step >> Bins::kStepBits, within = step & ((1 << Bins::kStepBits) - 1);
  return std::ldexp(1 + std::ldexp(within, -Bins::kStepBits), HistogramBins::kLowestOctave + octave);
}

}  // namespace

int Bins::of(float value) { return kRule.bin(std::bit_cast<int32_t>(value)); }

double Bins::low(int bin) {
  if (bin == kZero) return 0;
  return bin > kZero ? edge(bin - kZero - 1) : -edge(kZero - bin);
}

double Bins::high(int bin) { return bin == kZero ? 0 : -low(2 * kZero - bin); }

void ValueProfile::add(const ValueProfile& other) {
  min = std::min(min, other.min);
  max = std::max(max, other.max);
  elements += other.elements;
  notFinite += other.notFinite;
  for (size_t bin = 0; bin < counts.size(); ++bin) counts[bin] += other.counts[bin];
}

ValueProfile ValueProfile::stretchedTo(float low, float high) const {
  ValueProfile made;
  made.elements = elements;
  made.notFinite = notFinite;
  made.min = low;
  made.max = high;
  const double from = std::max(std::abs(static_cast<double>(min)), std::abs(static_cast<double>(max)));
  const double to = std::max(std::abs(static_cast<double>(low)), std::abs(static_cast<double>(high)));
  const double factor = from > 0 ? to / from : 1;
  for (int bin = 0; bin < Bins::kCount; ++bin)
    if (const int64_t count = counts[static_cast<size_t>(bin)]; count > 0) {
      const auto middle = static_cast<float>((Bins::low(bin) + Bins::high(bin)) / 2 * factor);
      made.counts[static_cast<size_t>(std::min(Bins::of(middle), Bins::kCount - 1))] += count;
    }
  return made;
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
  for (const auto& [name, value] : other.channels) channels[name].add(value);
  keepFloat.insert(other.keepFloat.begin(), other.keepFloat.end());
  return {};
}

}  // namespace aglow::quant
