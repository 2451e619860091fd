#include "runtime/clock.h"

#include <algorithm>

#include "runtime/quiet_thread.h"

namespace aglow {

Clock::Timer Clock::callAt(Time time, std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  const Timer timer = ++last_;
  calls_[{time, timer}] = std::move(function);
  times_[timer] = time;
  added();
  return timer;
}

bool Clock::cancel(Timer timer) {
  std::function<void()> dropped;  // what it holds may come back here when it goes, so it goes after the lock
  const std::lock_guard lock(mutex_);
  const auto found = times_.find(timer);
  if (found == times_.end()) return false;
  const auto call = calls_.find({found->second, timer});
  dropped = std::move(call->second);
  calls_.erase(call);
  times_.erase(found);
  return true;
}

std::function<void()> Clock::takeDue(Time now, Time* asked) {
  const std::lock_guard lock(mutex_);
  if (nextLocked() > now) return {};
  const auto first = calls_.begin();
  std::function<void()> function = std::move(first->second);
  if (asked != nullptr) *asked = first->first.first;
  times_.erase(first->first.second);
  calls_.erase(first);
  return function;
}

Clock::Time Clock::next() const {
  const std::lock_guard lock(mutex_);
  return nextLocked();
}

SystemClock::SystemClock() : thread_(quietThread([this] { loop(); })) {}

void SystemClock::stop() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void SystemClock::loop() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      while (!ends_ && nextLocked() > now()) {
        const Time until = nextLocked();
        if (until == Time::max())
          changed_.wait(lock);
        else
          changed_.wait_until(lock, until);
      }
      if (ends_) return;
    }
    while (const std::function<void()> function = takeDue(now())) function();
  }
}

Clock::Time ManualClock::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

void ManualClock::advance(Duration by) {
  const Time until = now() + by;
  Time asked;
  while (const std::function<void()> function = takeDue(until, &asked)) {
    {
      const std::lock_guard lock(mutex_);
      now_ = std::max(now_, asked);
    }
    function();
  }
  const std::lock_guard lock(mutex_);
  now_ = until;
}

}  // namespace aglow
