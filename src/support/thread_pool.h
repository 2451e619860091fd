// Threads that wait for work and do it in equal, fixed parts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "support/error.h"
#include "support/fork.h"

namespace aglow {

// More than any machine makes use of; each takes a stack and a place in the system's tables.
inline constexpr int kMaxThreads = 1024;
// Usage where more are asked for.
Status checkThreads(int threads);

class ThreadPool {
public:
  // `threads` counts the caller, who works along. Fewer where the system gives no more.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }
  // Calls part(thread, begin, end) for as many equal parts of the units as there are threads (fewer where there are
  // fewer units), and gives the largest of what the calls give. While a call is going on, others do their work alone.
  // A forked child gets threads of its own.
  int32_t run(int64_t units, const std::function<int32_t(int, int64_t, int64_t)>& part);

private:
  class Crew;

  std::unique_ptr<Crew> crew_;
  int threads_;
  uint32_t generation_;
  ForkMutex calling_;
};

}  // namespace aglow
