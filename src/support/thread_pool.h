// Threads that share work. Work is cut into chunks by what it is, never by how many threads there are; threads claim
// chunks as they come free, and the caller waits for chunks, not for threads. So a thread that has no processor just
// now holds up nobody but those who need what it has begun, and results do not depend on who did what.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "support/error.h"
#include "support/fork.h"

namespace aglow {

// More than any machine makes use of; each takes a stack and a place in the system's tables.
inline constexpr int kMaxThreads = 1024;
// Usage where more are asked for.
Status checkThreads(int threads);

struct Spread {
  int64_t units = 0;
  int threads = kMaxThreads;  // how many the work is worth; this and the units alone decide how it is cut
  int most = kMaxThreads;     // of them that the caller wants
};

class ThreadPool {
public:
  // `threads` counts the caller, who works along. Fewer where the system gives no more.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The pool that everything in this process shares, with at least as many threads as were asked for in any call, as
  // far as the system gives them.
  static std::shared_ptr<ThreadPool> ofProcess(int threads);

  int threads() const;

  // Calls part(thread, begin, end) for chunks that are all of the units, and gives the largest of what the calls give.
  // Threads are numbered from 0, which is the caller, to those that are wanted.
  // Any number of callers share the threads. A forked child gets threads of its own.
  template <class Part>
  int32_t run(const Spread& spread, const Part& part) {
    return run(
        spread,
        [](const void* context, int thread, int64_t begin, int64_t end) -> int32_t {
          return (*static_cast<const Part*>(context))(thread, begin, end);
        },
        &part);
  }

  // One thread that calls `run` again and again, for as long as this lives; within another of the same thread it counts
  // no more. Where there are several, each is given its share of the threads: work that is done side by side is done
  // soonest when nobody is in anybody's way.
  class Caller {
  public:
    explicit Caller(ThreadPool& pool);
    ~Caller();
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

  private:
    ThreadPool& pool_;
    const ThreadPool* const outer_;  // whose caller this thread is already
  };

  using Chunk = int32_t(const void* context, int thread, int64_t begin, int64_t end);
  int32_t run(const Spread& spread, Chunk* chunk, const void* context);

private:
  class Crew;

  Crew& crew();
  void grow(int threads);
  int share(const Crew& crew) const;

  std::atomic<Crew*> crew_;
  std::atomic<uint32_t> generation_;
  std::atomic<int> callers_ = 0;
  ForkMutex changing_;  // crew or its size
};

}  // namespace aglow
