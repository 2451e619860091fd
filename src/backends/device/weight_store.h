// The weights on a device: each uploaded once, whichever programs use it. Safe from several threads.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "support/error.h"
#include "tensor/tensor_pool.h"

namespace aglow::device {

// How a device gets memory, and bytes into it.
class DeviceMemory {
public:
  virtual ~DeviceMemory() = default;
  // A buffer, which is freed with its last owner.
  virtual Result<std::shared_ptr<void>> allocate(uint64_t bytes) = 0;
  // The host's bytes as a buffer, where the device reads them there; else none.
  virtual std::shared_ptr<void> shared(const Tensor& tensor) = 0;
  // The bytes may be used until finish.
  virtual Status upload(void* buffer, uint64_t offset, const Tensor& tensor) = 0;
  virtual Status finish() = 0;
};

class WeightStore {
public:
  // Where a tensor lies; it stays there as long as someone has this.
  struct Weight {
    std::shared_ptr<const void> owner;
    void* buffer = nullptr;
    uint64_t offset = 0;
  };

  // A place for each tensor: where an equal one lies that came from the same pool, or in new buffers of at most as many
  // bytes. Tensors that others may ask for are kept by the host too, as long as they are on the device.
  Result<std::vector<Weight>> place(std::span<const Tensor> tensors, TensorPool* pool, uint64_t bufferBytes,
                                    DeviceMemory& memory);

private:
  struct Slab;
  struct Known {
    std::weak_ptr<const Slab> slab;
    uint64_t offset = 0;
  };

  std::mutex mutex_;
  std::map<std::pair<const std::byte*, int64_t>, Known> known_;  // by address and size of what the slab keeps
};

}  // namespace aglow::device
