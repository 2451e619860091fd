// Equal tensors kept once: programs made of one model for different sizes hold the same packed weights. Safe from
// several threads.
#pragma once

#include <memory>
#include <unordered_map>

#include "support/fork.h"
#include "tensor/tensor.h"

namespace aglow {

class TensorPool {
public:
  // The tensor, or an equal one that someone still holds.
  std::shared_ptr<const Tensor> shared(Tensor tensor);

private:
  WholeMutex mutex_;
  std::unordered_multimap<uint64_t, std::weak_ptr<const Tensor>> held_;
};

}  // namespace aglow
