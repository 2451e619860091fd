// Time as the runtime sees it: what is to happen later, happens on the clock's thread. Tests have a clock that stands
// still until it is told to go on, so that whatever waits for time does the same in every run.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace aglow {

class Clock {
public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  // Of a call that is still to come; 0 is none.
  using Timer = uint64_t;

  virtual ~Clock() = default;
  virtual Time now() const = 0;

  // Calls the function once, when that time has come. It must be short.
  Timer callAt(Time time, std::function<void()> function);
  // False where it was called already, or is being called.
  bool cancel(Timer timer);

protected:
  // The first call that is due, taken out; empty where none is. With it the time for which it was asked.
  std::function<void()> takeDue(Time now, Time* asked = nullptr);
  // Of the first call to come; Time::max() where there is none.
  Time next() const;
  // A call was added, with the lock held.
  virtual void added() {}

  mutable std::mutex mutex_;

private:
  using Key = std::pair<Time, Timer>;
  Time nextLocked() const { return calls_.empty() ? Time::max() : calls_.begin()->first.first; }

  friend class SystemClock;
  std::map<Key, std::function<void()>> calls_;
  std::map<Timer, Time> times_;
  Timer last_ = 0;
};

// That of the machine, with a thread that calls.
class SystemClock : public Clock {
public:
  SystemClock();
  ~SystemClock() override { stop(); }
  // Calls nothing from now on. Whoever may hold the last share of a clock in a call of it, stops it first.
  void stop();
  Time now() const override { return std::chrono::steady_clock::now(); }

private:
  void added() override { changed_.notify_one(); }
  void loop();

  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

// Stands still until it is told to go on.
class ManualClock : public Clock {
public:
  Time now() const override;
  // Goes on, stopping at each call that falls due on the way; calls are made by the caller's thread.
  void advance(Duration by);

private:
  Time now_{};
};

}  // namespace aglow
