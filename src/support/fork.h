// What survives fork(): the child has a copy of all memory, but of the threads only the one that called it. A lock that
// another thread held is never given back there, and threads that were waiting for work are gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace aglow {

// Grows by one in every child.
uint32_t forkGeneration();

// A mutex that a child finds free where a thread of its parent held it. Only for what may be begun again half way:
// memory that holds nothing between two uses, or something that is there wholly or not at all.
class ForkMutex {
public:
  ForkMutex() { forkGeneration(); }
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  void lock() {
    const uint32_t mine = forkGeneration() + 1;
    while (!take(mine)) holder_.wait(mine);
  }
  bool try_lock() { return take(forkGeneration() + 1); }
  void unlock() {
    holder_.store(kFree, std::memory_order_release);
    holder_.notify_one();
  }

private:
  static constexpr uint32_t kFree = 0;

  // Whether it was free, or belonged to a thread that is not there any more.
  bool take(uint32_t mine) {
    uint32_t holder = kFree;
    while (!holder_.compare_exchange_strong(holder, mine, std::memory_order_acquire))
      if (holder == mine) return false;
    return true;
  }

  std::atomic<uint32_t> holder_ = kFree;  // else the generation of the process, and one
};

// A mutex that no other thread holds at a fork(), which waits for those that do: what it guards is whole in the child.
// For short work alone; who holds one must not fork, nor wait for a thread that might.
class WholeMutex {
public:
  void lock();
  void unlock();

private:
  std::mutex mutex_;
};

}  // namespace aglow
