// What is expensive to make, kept by a key that holds all it depends on. Bounded: what was not used for longest goes.
// Safe from several threads; each thing is made once, while others wait for it.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "support/diagnostics.h"
#include "support/fork.h"

namespace aglow {

template <class T>
class KeyedCache {
public:
  explicit KeyedCache(size_t limit) : limit_(limit) {}

  // What is under the key, or what `make` makes: a Diagnosed<std::shared_ptr<T>>. A fault is not kept. A forked child
  // makes again what a thread of its parent was making.
  template <class Make>
  Diagnosed<std::shared_ptr<T>> findOrMake(const std::string& key, const Make& make) {
    const std::shared_ptr<Slot> slot = take(key);
    const std::lock_guard lock(slot->making);
    if (slot->made) return slot->made;
    Diagnosed<std::shared_ptr<T>> made = make();
    if (made.ok()) slot->made = *made;
    return made;
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return slots_.size();
  }

private:
  struct Slot {
    ForkMutex making;
    std::shared_ptr<T> made;
    std::list<std::string>::iterator place;
  };

  // The slot, as the one used last.
  std::shared_ptr<Slot> take(const std::string& key) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Slot>& slot = slots_[key];
    if (slot) {
      order_.splice(order_.begin(), order_, slot->place);
      return slot;
    }
    slot = std::make_shared<Slot>();
    order_.push_front(key);
    slot->place = order_.begin();
    std::shared_ptr<Slot> taken = slot;
    // What goes lives on as long as a caller holds it.
    while (slots_.size() > limit_) {
      slots_.erase(order_.back());
      order_.pop_back();
    }
    return taken;
  }

  mutable WholeMutex mutex_;
  size_t limit_;
  std::list<std::string> order_;  // used last comes first
  std::unordered_map<std::string, std::shared_ptr<Slot>> slots_;
};

}  // namespace aglow
