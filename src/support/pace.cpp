#include "support/pace.h"

#include <algorithm>

namespace aglow {

int Pace::limit(int most, int64_t now) {
  int halvings = halvings_.load(std::memory_order_relaxed);
  if (halvings == 0) return most;
  if (now >= until_.load(std::memory_order_relaxed) &&
      halvings_.compare_exchange_strong(halvings, halvings - 1, std::memory_order_relaxed)) {
    until_.store(now + kFirstHold, std::memory_order_relaxed);
    trying_.store(true, std::memory_order_relaxed);
    busy_.store(0, std::memory_order_relaxed);
    waited_.store(0, std::memory_order_relaxed);
    --halvings;
  }
  return std::max(most >> halvings, 1);
}

void Pace::report(int64_t busy, int64_t waited, int64_t now) {
  const int64_t late = waited > kShortWait ? waited : 0;
  const int64_t allBusy = busy_.fetch_add(busy, std::memory_order_relaxed) + busy;
  const int64_t allWaited = waited_.fetch_add(late, std::memory_order_relaxed) + late;
  if (allBusy + allWaited < kWindow) return;
  busy_.store(0, std::memory_order_relaxed);
  waited_.store(0, std::memory_order_relaxed);
  const bool trying = trying_.exchange(false, std::memory_order_relaxed);
  if (allWaited <= allBusy) {
    strikes_.store(0, std::memory_order_relaxed);
    if (trying) hold_.store(kFirstHold, std::memory_order_relaxed);
    return;
  }
  if (strikes_.fetch_add(1, std::memory_order_relaxed) + 1 < kStrikes && !trying) return;
  strikes_.store(0, std::memory_order_relaxed);
  // Where trying twice as many was a loss, the next try comes later.
  const int64_t before = hold_.load(std::memory_order_relaxed);
  const int64_t hold = trying ? std::min(2 * before, kLongestHold) : before;
  hold_.store(hold, std::memory_order_relaxed);
  until_.store(now + hold, std::memory_order_relaxed);
  constexpr int kMost = 10;
  if (const int halvings = halvings_.load(std::memory_order_relaxed); halvings < kMost)
    halvings_.store(halvings + 1, std::memory_order_relaxed);
}

}  // namespace aglow
