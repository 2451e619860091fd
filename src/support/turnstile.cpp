#include "support/turnstile.h"

#include <algorithm>
#include <chrono>
#include <mutex>

namespace aglow {

namespace {

// Memory that belongs to a place is likely to be near the processor of the thread that had it last.
thread_local size_t lastPlace = 0;

constexpr std::chrono::milliseconds kPatience(1);

constexpr uint64_t kOneGeneration = uint64_t{1} << 32;

}  // namespace

// On a cache line of its own: neighbours are taken by other processors.
struct alignas(64) Turnstile::Place {
  static constexpr uint32_t kFree = 0;
  std::atomic<uint32_t> holder = kFree;  // else the generation of the process, and one

  // Whether it was free, or belonged to a thread of a process that this one was forked from.
  bool take() {
    const uint32_t mine = forkGeneration() + 1;
    uint32_t found = kFree;
    while (!holder.compare_exchange_strong(found, mine))
      if (found == mine) return false;
    return true;
  }
  void leave() { holder.exchange(kFree); }
};

struct Turnstile::Waiter {
  static constexpr uint32_t kAsleep = std::numeric_limits<uint32_t>::max(), kTry = kAsleep - 1;
  std::atomic<uint32_t> word = kAsleep;  // else the number of the place that it was given
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
  Waiter* next = nullptr;

  bool isOld() const { return std::chrono::steady_clock::now() - since > kPatience; }
  // It may go as soon as it has the word; only the address is used after that.
  static void tell(std::atomic<uint32_t>& to, uint32_t word) {
    to = word;
    to.notify_one();
  }
};

Turnstile::Turnstile(size_t places)
    : places_(std::make_unique<Place[]>(std::max<size_t>(places, 1))),
      count_(std::max<size_t>(places, 1)),
      generation_(forkGeneration()) {}

Turnstile::~Turnstile() = default;

std::optional<size_t> Turnstile::takeFree() {
  const size_t first = lastPlace < count_ ? lastPlace : 0;
  for (size_t i = 0; i < count_; ++i) {
    const size_t place = first + i < count_ ? first + i : first + i - count_;
    if (places_[place].take()) return place;
  }
  return std::nullopt;
}

void Turnstile::forgetParents() {
  if (generation_ == forkGeneration()) return;
  generation_ = forkGeneration();
  first_ = last_ = nullptr;
  waiting_ = 0;
  handing_ = told_ = false;
}

// A free place is never left while somebody waits: it is given away here, or the first was told and has not tried yet.
void Turnstile::wakeWaiters() {
  while (first_ != nullptr) {
    handing_ = first_->isOld();
    if (!handing_) {
      if (!told_.exchange(true)) Waiter::tell(first_->word, Waiter::kTry);
      return;
    }
    const auto place = takeFree();
    if (!place) return;
    std::atomic<uint32_t>& word = first_->word;
    removeFirst();
    Waiter::tell(word, static_cast<uint32_t>(*place));
  }
}

void Turnstile::removeFirst() {
  first_ = first_->next;
  waiting_.fetch_sub(1);
  handing_ = told_ = false;
}

std::optional<size_t> Turnstile::tryFirst(Waiter& self) {
  const std::lock_guard lock(mutex_);
  if (self.word != Waiter::kTry) return self.word;  // it was given one meanwhile
  // Before the places are looked at: who leaves one after that tells again.
  told_ = false;
  const auto place = takeFree();
  if (place) {
    removeFirst();
    wakeWaiters();
  } else {
    self.word = Waiter::kAsleep;
    handing_ = self.isOld();
  }
  return place;
}

std::optional<size_t> Turnstile::enter(size_t waiting) {
  if (!handing_)
    if (const auto place = takeFree()) return lastPlace = *place;
  Waiter self;
  {
    const std::lock_guard lock(mutex_);
    forgetParents();
    // Announced before the places are looked at again: who leaves one later sees that somebody waits.
    const size_t others = waiting_.fetch_add(1);
    std::optional<size_t> place;
    if (!handing_) place = takeFree();
    if (place || others >= waiting) {
      waiting_.fetch_sub(1);
      if (place) lastPlace = *place;
      return place;
    }
    (first_ == nullptr ? first_ : last_->next) = &self;
    last_ = &self;
  }
  while (true) {
    self.word.wait(Waiter::kAsleep);
    const uint32_t word = self.word;
    const std::optional<size_t> place = word == Waiter::kTry ? tryFirst(self) : word;
    if (place) return lastPlace = *place;
  }
}

void Turnstile::leave(size_t left) {
  places_[left].leave();
  if (waiting_ == 0 || (told_ && !handing_)) return;
  const std::lock_guard lock(mutex_);
  forgetParents();
  wakeWaiters();
}

bool SharedTurns::enterReading(size_t waiting) {
  if (!door_.enter(waiting)) return false;
  const uint64_t none = uint64_t{forkGeneration()} * kOneGeneration;
  uint64_t readers = readers_.load(std::memory_order_relaxed);
  while (!readers_.compare_exchange_weak(readers, std::max(readers, none) + 1, std::memory_order_acquire)) {
  }
  door_.leave(0);
  return true;
}

void SharedTurns::leaveReading() {
  const uint64_t none = uint64_t{forkGeneration()} * kOneGeneration;
  if (readers_.load(std::memory_order_relaxed) <= none) return;  // it was a reader of the parent
  if (readers_.fetch_sub(1, std::memory_order_release) == none + 1) readers_.notify_all();
}

bool SharedTurns::enterWriting(size_t waiting) {
  if (!door_.enter(waiting)) return false;
  const uint64_t none = uint64_t{forkGeneration()} * kOneGeneration;
  for (uint64_t readers = readers_.load(std::memory_order_acquire); readers > none;
       readers = readers_.load(std::memory_order_acquire))
    readers_.wait(readers, std::memory_order_acquire);
  return true;
}

void SharedTurns::leaveWriting() { door_.leave(0); }

SharedTurns::Turn::Turn(SharedTurns& turns, Use use, size_t waiting) : turns_(turns), use_(use) {
  entered_ = use == Use::None || (use == Use::Reads ? turns.enterReading(waiting) : turns.enterWriting(waiting));
}

SharedTurns::Turn::~Turn() {
  if (!entered_ || use_ == Use::None) return;
  use_ == Use::Reads ? turns_.leaveReading() : turns_.leaveWriting();
}

}  // namespace aglow
