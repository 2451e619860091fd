// How inputs, outputs and weights come to the device: from where they lie, where it reaches the host's memory, else
// over memory of the host that the driver pins once.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "backends/opencl/driver.h"

namespace aglow::opencl {

// Host memory that stays mapped, for as long as this lives.
class Staging {
public:
  static Result<std::shared_ptr<Staging>> create(std::shared_ptr<const Driver> driver, uint64_t bytes);
  Staging(const Staging&) = delete;
  ~Staging();

  std::byte* data() const { return data_; }

private:
  Staging() = default;

  std::shared_ptr<const Driver> driver_;
  OwnQueue queue_;
  OwnMemory memory_;
  std::byte* data_ = nullptr;
};

// Buffers over the caller's memory, for one run.
class Borrowed {
public:
  explicit Borrowed(const Driver& driver) : driver_(driver) {}

  // None where the bytes are not aligned as kernels want them, overlap others, or the driver refuses them.
  Memory add(std::byte* bytes, uint64_t count);
  // When kernels have been enqueued: so that the host sees what they write.
  Status giveBack(Queue queue, Memory memory) const;

private:
  struct Piece {
    OwnMemory memory;
    std::byte* begin = nullptr;
    uint64_t bytes = 0;
  };

  const Driver& driver_;
  std::vector<Piece> pieces_;
};

// Where weights lie: in the device's memory, or where the host has them.
class WeightMemory final : public device::DeviceMemory {
public:
  static Result<WeightMemory> create(std::shared_ptr<const Driver> driver, bool sharesMemory);

  Result<std::shared_ptr<void>> allocate(uint64_t bytes) override;
  std::shared_ptr<void> shared(const Tensor& tensor) override;
  Status upload(void* buffer, uint64_t offset, const Tensor& tensor) override;
  Status finish() override { return driver_->finish(queue_.get()); }

private:
  std::shared_ptr<void> owned(OwnMemory memory) const;

  std::shared_ptr<const Driver> driver_;
  bool sharesMemory_ = false;
  OwnQueue queue_;
};

// Where weights wait that travel. From other memory some drivers copy only while the host waits, which has kernels to
// enqueue.
class PinnedMemory final : public device::DeviceMemory {
public:
  explicit PinnedMemory(std::shared_ptr<const Driver> driver) : driver_(std::move(driver)) {}

  Result<std::shared_ptr<void>> allocate(uint64_t bytes) override;
  std::shared_ptr<void> shared(const Tensor&) override { return nullptr; }
  Status upload(void* buffer, uint64_t offset, const Tensor& tensor) override {
    std::memcpy(static_cast<std::byte*>(buffer) + offset, tensor.data(), static_cast<size_t>(tensor.bytes()));
    return {};
  }
  Status finish() override { return {}; }

private:
  std::shared_ptr<const Driver> driver_;
};

}  // namespace aglow::opencl
