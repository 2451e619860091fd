#include "dynamic/part_cache.h"

namespace aglow {

size_t PartCache::size() const {
  const std::lock_guard lock(mutex_);
  return slots_.size();
}

std::shared_ptr<PartCache::Slot> PartCache::take(const std::string& key) {
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
  // Those who run an evicted part hold it for as long as they need it.
  while (slots_.size() > limit_) {
    slots_.erase(order_.back());
    order_.pop_back();
  }
  return taken;
}

}  // namespace aglow
