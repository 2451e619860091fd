#include "quant/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace aglow::quant {

namespace {

constexpr int kMantissaBits = 23, kExponentBias = 127;
constexpr int kDropped = kMantissaBits - Bins::kStepBits;
// Sign, exponent and the first bits of the mantissa, as a number.
constexpr uint32_t kRawSign = 0x80000000u >> kDropped, kRawInfinity = 0x7f800000u >> kDropped;
constexpr uint32_t kRawCount = 2 * kRawSign;
// From one table to the next: not a power of two, so that their bins do not compete for places in the cache.
constexpr size_t kStride = kRawCount + 112;

int binOf(uint32_t raw) {
  constexpr int kFirst = (kExponentBias + Bins::kLowestOctave) << Bins::kStepBits;
  const uint32_t magnitude = raw & ~kRawSign;
  if (magnitude == 0) return Bins::kZero;
  if (magnitude >= kRawInfinity) return Bins::kCount;
  const int step = std::clamp(static_cast<int>(magnitude) - kFirst, 0, Bins::kSide - 1);
  return raw >= kRawSign ? Bins::kZero - 1 - step : Bins::kZero + 1 + step;
}

uint32_t rawOf(float value) { return std::bit_cast<uint32_t>(value) >> kDropped; }

// Bits as integers in the order of the numbers, and back.
int32_t inOrder(int32_t bits) { return bits ^ ((bits >> 31) & 0x7fffffff); }

// The smallest magnitude of a step above the lowest octave.
double edge(int step) {
  const int octave = step >> Bins::kStepBits, within = step & ((1 << Bins::kStepBits) - 1);
  return std::ldexp(1 + std::ldexp(within, -Bins::kStepBits), Bins::kLowestOctave + octave);
}

}  // namespace

int Bins::of(float value) { return binOf(rawOf(value)); }

double Bins::low(int bin) {
  if (bin == kZero) return 0;
  return bin > kZero ? edge(bin - kZero - 1) : -edge(kZero - bin);
}

double Bins::high(int bin) { return bin == kZero ? 0 : -low(2 * kZero - bin); }

namespace {

// Bits are counted first, without a branch, and bins once at the end. Neighbours often fall into one bin, above all
// into that of zero: with several tables an increment does not wait for the one before it.
constexpr size_t kTables = 4, kChunk = size_t{1} << 30;  // a count of a chunk fits 32 bits

void countBits(std::span<const float> values, std::span<uint32_t> tables) {
  const auto count = [&](size_t table, float value) { ++tables[table * kStride + rawOf(value)]; };
  size_t i = 0;
  for (; i + kTables <= values.size(); i += kTables)
    for (size_t t = 0; t < kTables; ++t) count(t, values[i + t]);
  for (; i < values.size(); ++i) count(0, values[i]);
}

// Tables that stay with a thread; whoever takes counts out leaves zeros.
std::span<uint32_t> emptyTables() {
  thread_local std::vector<uint32_t> tables(kTables * kStride);
  return tables;
}

}  // namespace

// Adds the counts, leaves zeros, and says how many were not finite.
int64_t ValueProfile::takeCounts(std::span<uint32_t> tables) {
  int64_t infinite = 0, all = 0;
  for (uint32_t raw = 0; raw < kRawCount; ++raw) {
    const uint64_t sum =
        uint64_t{tables[raw]} + tables[kStride + raw] + tables[2 * kStride + raw] + tables[3 * kStride + raw];
    if (sum == 0) continue;
    for (size_t t = 0; t < kTables; ++t) tables[t * kStride + raw] = 0;
    const int bin = binOf(raw);
    (bin == Bins::kCount ? infinite : counts[static_cast<size_t>(bin)]) += static_cast<int64_t>(sum);
    all += static_cast<int64_t>(sum);
  }
  notFinite += infinite;
  elements += all - infinite;
  return infinite;
}

void ValueProfile::add(std::span<const float> values) {
  for (; values.size() > kChunk; values = values.subspan(kChunk)) add(values.first(kChunk));
  const std::span<uint32_t> tables = emptyTables();
  countBits(values, tables);
  addEnds(values, takeCounts(tables) == 0);
}

void ValueProfile::add(std::span<const float> values, ChannelProfile& of, int64_t channels, int64_t inner) {
  if (values.size() > kChunk) {
    add(values);
    of.add(values, channels, inner);
    return;
  }
  const std::span<uint32_t> tables = emptyTables();
  ChannelProfile one;
  one.add(values, channels, inner, [&](std::span<const float> piece) { countBits(piece, tables); });
  of.add(one);
  if (takeCounts(tables) > 0) {
    addEnds(values, false);
  } else if (!one.min.empty()) {
    min = std::min(min, *std::min_element(one.min.begin(), one.min.end()));
    max = std::max(max, *std::max_element(one.max.begin(), one.max.end()));
  }
}

// Integers in the order of the numbers are compared many at a time.
void ValueProfile::addEnds(std::span<const float> values, bool allFinite) {
  int32_t smallest = inOrder(std::bit_cast<int32_t>(min)), largest = inOrder(std::bit_cast<int32_t>(max));
  for (const float value : values) {
    if (!allFinite && !std::isfinite(value)) continue;
    const int32_t place = inOrder(std::bit_cast<int32_t>(value));
    smallest = std::min(smallest, place);
    largest = std::max(largest, place);
  }
  // The sum makes zeros of one sign.
  min = std::bit_cast<float>(inOrder(smallest)) + 0.0f;
  max = std::bit_cast<float>(inOrder(largest)) + 0.0f;
}

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
