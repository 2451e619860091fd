#include "cli/measure.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <optional>
#include <system_error>
#include <thread>

namespace aglow::cli {

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// What the threads of one measurement share.
class Measurement {
public:
  Measurement(int runs, int fewest, double seconds) : runs_(runs), fewest_(fewest), seconds_(seconds) {}

  void work(Runner& runner) {
    std::vector<double> times;
    while (!failed_ && wants(static_cast<int>(times.size()))) {
      const Result<double> time = runner.seconds();
      if (!time.ok()) {
        failed_ = true;
        const std::lock_guard lock(mutex_);
        if (!fault_) fault_ = time.error();
        return;
      }
      times.push_back(*time);
    }
    const std::lock_guard lock(mutex_);
    all_.insert(all_.end(), times.begin(), times.end());
  }

  Result<Measured> result() {
    if (fault_) return *fault_;
    return Measured{.times = std::move(all_), .seconds = since(start_)};
  }

private:
  bool wants(int done) {
    if (runs_ > 0) return next_.fetch_add(1) < runs_;
    return done < fewest_ || since(start_) < seconds_;
  }

  const int runs_, fewest_;
  const double seconds_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<int64_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // of what follows
  std::vector<double> all_;
  std::optional<Error> fault_;
};

}  // namespace

Result<double> Runner::seconds(RunObserver* observer) {
  const Clock::time_point start = Clock::now();
  AGLOW_OK(run(observer));
  return since(start);
}

Result<Measured> measure(std::span<const std::unique_ptr<Runner>> runners, int runs, int fewest, double seconds) {
  Measurement measurement(runs, fewest, seconds);
  try {
    std::vector<std::jthread> threads;
    for (const auto& runner : runners.subspan(1)) threads.emplace_back([&] { measurement.work(*runner); });
    measurement.work(*runners.front());
  } catch (const std::system_error&) {
    return Error{.code = Code::OutOfMemory, .message = "the system gives no more threads"};
  }
  return measurement.result();
}

Statistics statisticsOf(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const size_t n = times.size();
  const auto percentile = [&](size_t percent) { return times[(n * percent + 99) / 100 - 1]; };
  return {.median = (times[(n - 1) / 2] + times[n / 2]) / 2,
          .best = times.front(),
          .mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(n),
          .p50 = percentile(50),
          .p90 = percentile(90),
          .p99 = percentile(99)};
}

}  // namespace aglow::cli
