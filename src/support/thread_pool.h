// Threads that wait for work and do it in equal, fixed parts.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace aglow {

class ThreadPool {
public:
  // `threads` counts the caller, who works along.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  // Calls part(thread, begin, end) for as many equal parts of the units as there are threads (fewer where there are
  // fewer units), and gives the largest of what the calls give. While a call is going on, others do their work alone.
  int32_t run(int64_t units, const std::function<int32_t(int, int64_t, int64_t)>& part);

private:
  void work(int thread);
  void doPart(int thread);

  std::vector<std::thread> workers_;
  std::mutex calling_;
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

}  // namespace aglow
