#include "support/fork.h"

#include <pthread.h>

#include <thread>

namespace aglow {

namespace {

std::atomic<uint32_t> generation = 0;

// Threads that hold a WholeMutex or wait for one, and threads that are about to fork.
std::atomic<int> holders = 0;
std::atomic<int> forking = 0;
thread_local int held = 0;  // by this thread

void beforeFork() {
  ++forking;
  while (holders > 0) std::this_thread::yield();
}

void afterForkInParent() {
  if (--forking == 0) forking.notify_all();
}

void afterForkInChild() {
  ++generation;
  holders = 0;
  forking = 0;
}

}  // namespace

uint32_t forkGeneration() {
  static const int registered = ::pthread_atfork(beforeFork, afterForkInParent, afterForkInChild);
  (void)registered;
  return generation.load(std::memory_order_relaxed);
}

void WholeMutex::lock() {
  // A thread that holds another one already must get on: the fork is waiting for it.
  if (held++ == 0) {
    forkGeneration();
    ++holders;
    for (int forks = forking; forks != 0; forks = forking) {
      --holders;
      forking.wait(forks);
      ++holders;
    }
  }
  mutex_.lock();
}

void WholeMutex::unlock() {
  mutex_.unlock();
  if (--held == 0) --holders;
}

}  // namespace aglow
