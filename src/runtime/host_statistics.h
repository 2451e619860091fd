// What a host can tell of its networks and devices, as of one moment.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace aglow {

// How long something took, of any number of times, in little memory: every count lies in a range whose ends differ by
// an eighth at most.
class LatencyHistogram {
public:
  void add(double microseconds);
  uint64_t count() const { return count_; }
  double sum() const { return sum_; }  // microseconds
  // The value below which this part of them lies, from 0 to 1; 0 where there are none.
  double quantile(double part) const;
  // How many took at most as long.
  uint64_t upTo(double microseconds) const;
  // The ranges that have any, in order: the upper end of each in microseconds, and how many lie in it.
  std::vector<std::pair<double, uint64_t>> ranges() const;

private:
  static constexpr int kSteps = 8, kOctaves = 40;
  static size_t bucketOf(double microseconds);
  static double upperEnd(size_t bucket);

  std::array<uint64_t, kSteps * kOctaves> buckets_{};
  uint64_t count_ = 0;
  double sum_ = 0;
};

struct NetworkStatistics {
  std::string name, version;
  bool current = false;
  // Requests so far. What was accepted ends as one of the four that follow.
  uint64_t accepted = 0, refused = 0;
  uint64_t succeeded = 0, failed = 0, cancelled = 0, expired = 0;
  uint64_t retried = 0;                 // runs again, after a device failed
  size_t waiting = 0, running = 0;      // now
  size_t replicas = 0, wanted = 0;      // now, and asked for
  uint64_t runs = 0;                    // of batches
  std::map<int64_t, uint64_t> batches;  // how many runs had so many rows
  LatencyHistogram queue, run, total;   // of requests that succeeded: until the run, in it, altogether
};

struct HostStatistics {
  std::vector<NetworkStatistics> networks;
  std::vector<DeviceStatistics> devices;
  uint64_t refused = 0;  // all: unknown networks and a full host included
  size_t underWay = 0;   // accepted and not answered
};

}  // namespace aglow
