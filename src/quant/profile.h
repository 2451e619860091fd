// What runs of a model tell of its values: the exact smallest and largest, and how often each size occurred.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ops/observed.h"
#include "quant/channels.h"
#include "support/error.h"

namespace aglow::quant {

// The bins of all histograms, 32 for each octave.
struct Bins {
  static constexpr int kStepBits = 5;
  static constexpr HistogramBins kRule = HistogramBins::of(kStepBits);
  static constexpr int kZero = kRule.zero();
  static constexpr int kCount = kRule.notFinite();

  // Of a finite value; kCount for others.
  static int of(float value);
  // The smallest and largest value of a bin.
  static double low(int bin);
  static double high(int bin);
};

// What is known of one value.
struct ValueProfile {
  float min = std::numeric_limits<float>::infinity(), max = -std::numeric_limits<float>::infinity();
  int64_t elements = 0;   // that are finite: the sum of the counts
  int64_t notFinite = 0;  // infinite, or not a number; these count nowhere else
  std::vector<int64_t> counts = std::vector<int64_t>(Bins::kCount);

  void add(const ValueProfile& other);
  // As if its numbers had been stretched until they reach these ends; all of them by the larger factor of both.
  ValueProfile stretchedTo(float low, float high) const;
  bool operator==(const ValueProfile&) const = default;
};

// What samples tell of a model. Values have the names that the optimized graph gives them: "%conv" for the result of a
// node, "@image" for an input.
struct Profile {
  uint64_t model = 0;  // fingerprintOf the graph that was profiled
  int64_t samples = 0;
  std::map<std::string, ValueProfile> values;
  std::map<std::string, ChannelProfile> channels;  // of those that products take or give
  // Layers by their names: without them the samples showed too much noise.
  std::set<std::string> keepFloat;

  // The samples of both; Usage where they are of different models.
  Status add(const Profile& other);
  bool operator==(const Profile&) const = default;
};

}  // namespace aglow::quant
