#include "backends/device/weight_store.h"

#include <algorithm>

#include "backends/device/memory_plan.h"

namespace aglow::device {

// One buffer, and what was uploaded there as the host has it.
struct WeightStore::Slab {
  std::shared_ptr<void> buffer;
  std::vector<std::shared_ptr<const Tensor>> kept;
};

Result<std::vector<WeightStore::Weight>> WeightStore::place(std::span<const Tensor> tensors, TensorPool* pool,
                                                            uint64_t bufferBytes, DeviceMemory& memory) {
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& entry) { return entry.second.slab.expired(); });
  using Key = std::pair<const std::byte*, int64_t>;
  const auto keyOf = [](const Tensor& tensor) { return Key{tensor.data(), tensor.bytes()}; };
  std::vector<std::shared_ptr<const Tensor>> held;
  std::map<Key, Weight> here;  // what this call has, so that it is not lost meanwhile
  std::vector<size_t> missing;
  const auto put = [&](const Key& key, const std::shared_ptr<const Slab>& slab, uint64_t offset) {
    here[key] = {slab, slab->buffer.get(), offset};
  };
  for (const Tensor& tensor : tensors) {
    held.push_back(pool == nullptr ? std::make_shared<const Tensor>(tensor) : pool->shared(tensor));
    const Key key = keyOf(*held.back());
    if (here.contains(key)) continue;
    // Who had it may have given it up a moment ago.
    const auto it = known_.find(key);
    const std::shared_ptr<const Slab> there = it == known_.end() ? nullptr : it->second.slab.lock();
    if (there != nullptr) {
      put(key, there, it->second.offset);
    } else if (std::shared_ptr<void> buffer = memory.shared(*held.back())) {
      const auto slab = std::make_shared<const Slab>(Slab{std::move(buffer), {held.back()}});
      put(key, slab, 0);
      known_[key] = {slab, 0};
    } else {
      here[key] = {};
      missing.push_back(held.size() - 1);
    }
  }
  Packing packing{.bufferBytes = bufferBytes};
  std::vector<std::pair<size_t, uint64_t>> places;
  for (const size_t i : missing) places.push_back(packing.add(static_cast<uint64_t>(held[i]->bytes())));
  std::vector<std::shared_ptr<Slab>> slabs;
  for (const uint64_t bytes : packing.buffers) {
    AGLOW_TRY(std::shared_ptr<void> buffer, memory.allocate(bytes));
    slabs.push_back(std::make_shared<Slab>(Slab{std::move(buffer), {}}));
  }
  Status done;
  for (size_t i = 0; i < missing.size() && done.ok(); ++i) {
    const auto& [number, offset] = places[i];
    const std::shared_ptr<const Tensor>& tensor = held[missing[i]];
    done = memory.upload(slabs[number]->buffer.get(), offset, *tensor);
    if (pool != nullptr) slabs[number]->kept.push_back(tensor);
    put(keyOf(*tensor), slabs[number], offset);
  }
  // Even where an upload was refused: those before it may still read the host's bytes.
  const Status finished = memory.finish();
  AGLOW_OK(std::move(done));
  AGLOW_OK(finished);
  if (pool != nullptr)
    for (size_t i = 0; i < missing.size(); ++i)
      known_[keyOf(*held[missing[i]])] = {slabs[places[i].first], places[i].second};
  std::vector<Weight> weights;
  for (const std::shared_ptr<const Tensor>& tensor : held) weights.push_back(here.at(keyOf(*tensor)));
  return weights;
}

}  // namespace aglow::device
