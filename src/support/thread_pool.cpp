#include "support/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

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

// The threads besides the caller, and what they wait on.
class ThreadPool::Crew {
public:
  explicit Crew(int threads) {
    // Signals are for the threads of the program, not for these.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      workers_.reserve(static_cast<size_t>(threads - 1));
      for (int thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { work(thread); });
    } catch (const std::system_error&) {
    } catch (const std::bad_alloc&) {
      // Those that there are have to do.
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  ~Crew() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      ++round_;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  int32_t run(int64_t units, const std::function<int32_t(int, int64_t, int64_t)>& part) {
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

private:
  void doPart(int thread) {
    if (thread >= parts_) return;
    const int32_t status = (*part_)(thread, units_ * thread / parts_, units_ * (thread + 1) / parts_);
    int32_t worst = worst_.load(std::memory_order_relaxed);
    while (status > worst && !worst_.compare_exchange_weak(worst, status)) {
    }
  }

  void work(int thread) {
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

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> round_ = 0;  // grows with every call of run
  std::atomic<int> busy_ = 0;
  std::atomic<int32_t> worst_ = 0;
  std::atomic<bool> stop_ = false;
  const std::function<int32_t(int, int64_t, int64_t)>* part_ = nullptr;
  int64_t units_ = 0;
  int parts_ = 0;
};

Status checkThreads(int threads) {
  if (threads >= 0 && threads <= kMaxThreads) return {};
  return Error{.code = Code::Usage,
               .message = "threads are " + std::to_string(threads) + "; expected 1 to " + std::to_string(kMaxThreads) +
                          ", or 0 for one per processor"};
}

ThreadPool::ThreadPool(int threads)
    : crew_(std::make_unique<Crew>(std::clamp(threads, 1, kMaxThreads))),
      threads_(crew_->threads()),
      generation_(forkGeneration()) {}

ThreadPool::~ThreadPool() {
  // The parent's threads are not here, and nothing that they wait on can be taken down without them.
  if (generation_ != forkGeneration()) (void)crew_.release();
}

int32_t ThreadPool::run(int64_t units, const std::function<int32_t(int, int64_t, int64_t)>& part) {
  if (units == 0) return 0;
  if (threads_ == 1 || units == 1) return part(0, 0, units);
  const std::unique_lock call(calling_, std::try_to_lock);
  if (!call) return part(0, 0, units);
  if (generation_ != forkGeneration()) {
    (void)crew_.release();
    crew_ = std::make_unique<Crew>(threads_);
    generation_ = forkGeneration();
  }
  return crew_->run(units, part);
}

}  // namespace aglow
