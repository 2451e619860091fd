// What runs of a model tell of its values: the exact smallest and largest, and how often each size occurred.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "quant/channels.h"
#include "support/error.h"

namespace aglow::quant {

// The bins of all histograms: each octave of a magnitude has as many of equal width, so a bin is read off the bits of
// an f32. No range has to be known beforehand, and counts of several runs add up exactly, in any order. They stand in
// the order of their values: negative ones, zero, positive ones. Magnitudes outside of the octaves count in the nearest
// bin, and those that f32 holds with few bits as zero.
struct Bins {
  static constexpr int kStepBits = 5;
  static constexpr int kLowestOctave = -40, kOctaves = 64;
  static constexpr int kSide = kOctaves << kStepBits;  // bins of one sign
  static constexpr int kZero = kSide;
  static constexpr int kCount = 2 * kSide + 1;

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

  void add(std::span<const float> values);
  // The same, and what they tell of their channels; [outer, channels, inner].
  void add(std::span<const float> values, ChannelProfile& of, int64_t channels, int64_t inner);
  void add(const ValueProfile& other);
  // As if its numbers had been stretched until they reach these ends; all of them by the larger factor of both.
  ValueProfile stretchedTo(float low, float high) const;
  bool operator==(const ValueProfile&) const = default;

private:
  void addEnds(std::span<const float> values, bool allFinite);
  int64_t takeCounts(std::span<uint32_t> tables);
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
