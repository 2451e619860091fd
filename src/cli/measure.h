// Something run again and again, by one thread or by several at once, and how long that takes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backends/backend.h"

namespace aglow::cli {

class Runner {
public:
  virtual ~Runner() = default;
  virtual Status run(RunObserver* observer) = 0;

  Result<double> seconds(RunObserver* observer = nullptr);
};

struct Measured {
  std::vector<double> times;  // of each run
  double seconds = 0;         // from the first run's begin to the last one's end
};

// So many runs, or, where that is 0, as many as fit into the time, and of each runner at least `fewest`. Each runner
// has a thread of its own: the caller's, where there is only one.
Result<Measured> measure(std::span<const std::unique_ptr<Runner>> runners, int runs, int fewest, double seconds);

struct Statistics {
  double median = 0, best = 0, mean = 0;
  double p50 = 0, p90 = 0, p99 = 0;  // so many in a hundred are not slower
};
Statistics statisticsOf(std::vector<double> times);

}  // namespace aglow::cli
