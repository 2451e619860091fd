// What Observe keeps of a value: the bins of its histogram, and where its channels lie. Kernels of generated code
// include this as well, so it needs nothing else.
#pragma once

#include <stdint.h>

namespace aglow {

class Attrs;
class Shape;

// Bins of equal width within each octave of a magnitude, 2^stepBits of them, so that a bin is read off the bits of an
// f32: no range has to be known beforehand, and counts of several runs add up exactly. They stand in the order of their
// values: negative ones, zero, positive ones. Magnitudes outside of the octaves count in the nearest bin, and those
// that f32 holds with few bits as zero. After the last bin are counted those that are not finite.
struct HistogramBins {
  static constexpr int32_t kLowestOctave = -40, kOctaves = 64, kMostStepBits = 8;

  int32_t dropped;   // bits of the mantissa that do not matter
  int32_t below;     // what the remaining bits of a magnitude are, as a number, just below the lowest octave
  int32_t infinity;  // the same of what is not finite
  int32_t side;      // bins of one sign

  static constexpr HistogramBins of(int64_t stepBits) {
    constexpr int32_t kMantissaBits = 23, kExponentBias = 127, kExponents = 255;
    const auto bits = static_cast<int32_t>(stepBits);
    return {kMantissaBits - bits, ((kExponentBias + kLowestOctave) << bits) - 1, kExponents << bits, kOctaves << bits};
  }
  constexpr int32_t zero() const { return side; }
  constexpr int32_t notFinite() const { return 2 * side + 1; }
  constexpr int32_t counts() const { return notFinite() + 1; }

  // By the bits of an f32.
  constexpr int32_t bin(int32_t bits) const {
    const int32_t magnitude = (bits & INT32_MAX) >> dropped;
    if (magnitude == 0) return zero();
    if (magnitude >= infinity) return notFinite();
    const int32_t step = magnitude <= below ? 1 : magnitude - below > side ? side : magnitude - below;
    return bits < 0 ? zero() - step : zero() + step;
  }
};

// What is kept of each channel, in rows: the ends of what is finite, and sums over runs of the mean of each run and of
// its mean of squares.
enum ObservedRow : int32_t { kSmallest, kLargest, kMean, kSquare, kObservedRows };

// A value as [outer, groups, rows, lanes]; channel l of group g has the number g * lanes + l.
struct ObservedForm {
  int64_t outer, groups, rows, lanes;
};
ObservedForm observedForm(const Attrs& attrs, const Shape& x);

// The multiple of 2^-30 that is nearest to a mean, so that sums of them are exact and come out alike in any order.
constexpr double onGrid(double mean) {
  constexpr double kSteps = 0x1p30, kRounds = 0x1.8p52, kWhole = 0x1p51;
  const double steps = mean * kSteps;
  if (!(steps < kWhole && steps > -kWhole)) return mean;
  return (steps + kRounds - kRounds) / kSteps;
}

}  // namespace aglow
