#include "support/fork.h"

#include <pthread.h>

namespace aglow {

namespace {

std::atomic<uint32_t> generation = 0;

}  // namespace

uint32_t forkGeneration() {
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { ++generation; });
  (void)registered;
  return generation.load(std::memory_order_relaxed);
}

}  // namespace aglow
