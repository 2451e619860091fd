#include "runtime/host_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace aglow {

// Buckets are counted in quarters of a microsecond: those below kSteps stand for themselves, those above for the
// leading bits of a number.
size_t LatencyHistogram::bucketOf(double microseconds) {
  const double most = 0x1p40;
  const auto ticks = static_cast<uint64_t>(std::clamp(microseconds * 4, 0.0, most));
  if (ticks < kSteps) return static_cast<size_t>(ticks);
  const auto octave = static_cast<int>(std::bit_width(ticks)) - 4;  // the leading four bits are kept
  const size_t bucket = static_cast<size_t>(octave) * kSteps + static_cast<size_t>(ticks >> octave);
  return std::min(bucket, static_cast<size_t>(kSteps * kOctaves - 1));
}

double LatencyHistogram::upperEnd(size_t bucket) {
  if (bucket < kSteps) return static_cast<double>(bucket + 1) / 4;
  const size_t octave = bucket / kSteps - 1;
  return std::ldexp(static_cast<double>(bucket % kSteps + kSteps + 1), static_cast<int>(octave)) / 4;
}

void LatencyHistogram::add(double microseconds) {
  ++buckets_[bucketOf(microseconds)];
  ++count_;
  sum_ += microseconds;
}

double LatencyHistogram::quantile(double part) const {
  if (count_ == 0) return 0;
  const auto wanted = static_cast<uint64_t>(std::ceil(part * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= std::max<uint64_t>(wanted, 1)) return upperEnd(i);
  }
  return upperEnd(buckets_.size() - 1);
}

std::vector<std::pair<double, uint64_t>> LatencyHistogram::ranges() const {
  std::vector<std::pair<double, uint64_t>> filled;
  for (size_t i = 0; i < buckets_.size(); ++i)
    if (buckets_[i] > 0) filled.emplace_back(upperEnd(i), buckets_[i]);
  return filled;
}

uint64_t LatencyHistogram::upTo(double microseconds) const {
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size() && upperEnd(i) <= microseconds; ++i) seen += buckets_[i];
  return seen;
}

}  // namespace aglow
