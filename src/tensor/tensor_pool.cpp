#include "tensor/tensor_pool.h"

namespace aglow {

std::shared_ptr<const Tensor> TensorPool::shared(Tensor tensor) {
  // Those of a mapped file are there once anyway.
  if (!tensor.ownsBytes()) return std::make_shared<const Tensor>(std::move(tensor));
  const uint64_t hash = tensor.hash();
  const std::lock_guard lock(mutex_);
  std::erase_if(held_, [](const auto& entry) { return entry.second.expired(); });
  const auto [first, last] = held_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (std::shared_ptr<const Tensor> known = it->second.lock(); known != nullptr && *known == tensor) return known;
  auto made = std::make_shared<const Tensor>(std::move(tensor));
  held_.emplace(hash, made);
  return made;
}

}  // namespace aglow
