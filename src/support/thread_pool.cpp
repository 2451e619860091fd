#include "support/thread_pool.h"

#include <algorithm>
#include <chrono>

namespace aglow {

namespace {

// Steps of a model follow each other within microseconds, so a thread looks for the next one for a while before it
// sleeps.
constexpr int kSpins = 20'000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  for (int thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { work(thread); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    ++round_;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::doPart(int thread) {
  if (thread >= parts_) return;
  const int32_t status = (*part_)(thread, units_ * thread / parts_, units_ * (thread + 1) / parts_);
  int32_t worst = worst_.load(std::memory_order_relaxed);
  while (status > worst && !worst_.compare_exchange_weak(worst, status)) {
  }
}

void ThreadPool::work(int thread) {
  uint64_t seen = 0;
  while (true) {
    for (int spin = 0; spin < kSpins && round_.load(std::memory_order_acquire) == seen; ++spin) pause();
    if (round_.load(std::memory_order_acquire) == seen) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return round_.load(std::memory_order_acquire) != seen; });
    }
    seen = round_.load(std::memory_order_acquire);
    if (stop_) return;
    doPart(thread);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

int32_t ThreadPool::run(int64_t units, const std::function<int32_t(int, int64_t, int64_t)>& part) {
  if (units == 0) return 0;
  if (workers_.empty() || units == 1) return part(0, 0, units);
  const std::unique_lock call(calling_, std::try_to_lock);
  if (!call) return part(0, 0, units);
  units_ = units;
  parts_ = static_cast<int>(std::min<int64_t>(units, threads()));
  part_ = &part;
  worst_ = 0;
  busy_ = static_cast<int>(workers_.size());
  {
    const std::lock_guard lock(mutex_);
    round_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  doPart(0);
  for (int spin = 0; busy_.load(std::memory_order_acquire) != 0; ++spin) {
    // With fewer processors than threads the others need this one to get anywhere.
    if (spin < kSpins)
      pause();
    else
      std::this_thread::yield();
  }
  return worst_;
}

}  // namespace aglow
