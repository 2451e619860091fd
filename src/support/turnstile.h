// Places that threads take and give back. Who finds none free waits, in order of arrival; how many may is bounded.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "support/fork.h"

namespace aglow {

// Where a place is free, taking one costs a single exchange. To hand a place to a thread that sleeps takes longer than
// a small model runs, so one that comes by may take it first, until somebody has waited for a millisecond: from then on
// places go to those who wait. A forked child finds all places free, and nobody waiting.
class Turnstile {
public:
  static constexpr size_t kNoBound = std::numeric_limits<size_t>::max();

  // At least one place.
  explicit Turnstile(size_t places);
  ~Turnstile();
  Turnstile(const Turnstile&) = delete;
  Turnstile& operator=(const Turnstile&) = delete;

  size_t places() const { return count_; }
  // Who waits now, for reports.
  size_t waiting() const { return waiting_; }
  // The number of a place, which is the caller's until it leaves; none where all are taken and `waiting` others wait.
  // A thread gets the place that it had last, where that is free.
  std::optional<size_t> enter(size_t waiting = kNoBound);
  void leave(size_t place);

private:
  struct Place;
  struct Waiter;

  std::optional<size_t> takeFree();
  // What follows is called under the lock. Forgets those who wait where they are threads of a process that this one was
  // forked from.
  void forgetParents();
  // Tells the first that a place may be free, or, once it has waited long enough, gives it one.
  void wakeWaiters();
  void removeFirst();
  // After it was told that a place may be free.
  std::optional<size_t> tryFirst(Waiter& self);

  std::unique_ptr<Place[]> places_;
  size_t count_;
  WholeMutex mutex_;  // of all changes to what follows
  std::atomic<size_t> waiting_ = 0;
  std::atomic<bool> handing_ = false;  // who comes by has to wait
  std::atomic<bool> told_ = false;     // the first was told to try, and has not yet
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
  uint32_t generation_;
};

// A place for as long as this lives; false where there was none.
class Turn {
public:
  Turn(Turnstile& turnstile, size_t waiting) : turnstile_(turnstile), place_(turnstile.enter(waiting)) {}
  ~Turn() {
    if (place_) turnstile_.leave(*place_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  explicit operator bool() const { return place_.has_value(); }
  size_t place() const { return *place_; }

private:
  Turnstile& turnstile_;
  std::optional<size_t> place_;
};

// One that changes something, alone with it, or any number that look at it. All come through the same turnstile, so
// nobody waits for ever.
class SharedTurns {
public:
  // False, and nothing taken, where `waiting` others wait.
  bool enterReading(size_t waiting = Turnstile::kNoBound);
  void leaveReading();
  bool enterWriting(size_t waiting = Turnstile::kNoBound);
  void leaveWriting();

  enum class Use : uint8_t { None, Reads, Writes };
  // One of these for as long as this lives; false where it could not be had.
  class Turn {
  public:
    Turn(SharedTurns& turns, Use use, size_t waiting = Turnstile::kNoBound);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    explicit operator bool() const { return entered_; }

  private:
    SharedTurns& turns_;
    Use use_;
    bool entered_;
  };

private:
  Turnstile door_{1};
  std::atomic<uint64_t> readers_ = 0;  // how many, below the generation of the process that they belong to
};

}  // namespace aglow
