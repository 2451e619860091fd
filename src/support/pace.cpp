#include "support/pace.h"

#include <algorithm>

namespace aglow {

int Pace::limit(int most, int64_t now) {
  int halvings = halvings_.load(std::memory_order_relaxed);
  if (halvings == 0) return most;
  if (now >= until_.load(std::memory_order_relaxed) &&
      halvings_.compare_exchange_strong(halvings, halvings - 1, std::memory_order_relaxed)) {
    // The next halving comes soon if this was too early, and then holds for longer.
    until_.store(now + hold_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    --halvings;
  }
  return std::max(most >> halvings, 1);
}

void Pace::report(int threads, int64_t busy, int64_t waited, int64_t now) {
  const int64_t allBusy = busy_.fetch_add(busy, std::memory_order_relaxed) + busy;
  const int64_t late = waited > kShortWait ? waited : 0;
  const int64_t allWaited = waited_.fetch_add(late, std::memory_order_relaxed) + late;
  if (allBusy + allWaited < kWindow) return;
  busy_.store(0, std::memory_order_relaxed);
  waited_.store(0, std::memory_order_relaxed);
  const int64_t hold = hold_.load(std::memory_order_relaxed), until = until_.load(std::memory_order_relaxed);
  if (allWaited <= allBusy) {
    if (now > until + kLongestHold) hold_.store(kFirstHold, std::memory_order_relaxed);
    return;
  }
  const int halvings = halvings_.load(std::memory_order_relaxed);
  if (threads <= 1 || halvings >= 10) return;
  hold_.store(std::min(2 * hold, kLongestHold), std::memory_order_relaxed);
  until_.store(now + hold, std::memory_order_relaxed);
  halvings_.store(halvings + 1, std::memory_order_relaxed);
}

}  // namespace aglow
