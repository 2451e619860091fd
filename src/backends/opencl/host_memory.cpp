#include "backends/opencl/host_memory.h"

#include <algorithm>

#include "inst/program.h"

namespace aglow::opencl {

static bool isAligned(const std::byte* bytes) { return reinterpret_cast<uintptr_t>(bytes) % Program::kAlignment == 0; }

Result<std::shared_ptr<Staging>> Staging::create(std::shared_ptr<const Driver> driver, uint64_t bytes) {
  std::shared_ptr<Staging> staging(new Staging);
  AGLOW_TRY(staging->queue_, driver->makeQueue());
  AGLOW_TRY(staging->memory_, driver->makeBuffer(bytes, kAllocateInHost));
  AGLOW_TRY(void* data, driver->map(staging->queue_.get(), staging->memory_.get(), bytes, kMapToRead | kMapToWrite));
  staging->data_ = static_cast<std::byte*>(data);
  staging->driver_ = std::move(driver);
  return staging;
}

Staging::~Staging() {
  if (data_ == nullptr || !driver_->api().usable().ok()) return;
  // Of a lost device nothing is expected any more.
  const Status unmapped = driver_->unmap(queue_.get(), memory_.get(), data_);
  if (unmapped.ok()) static_cast<void>(driver_->finish(queue_.get()));
}

Memory Borrowed::add(std::byte* bytes, uint64_t count) {
  if (!isAligned(bytes)) return nullptr;
  for (const Piece& piece : pieces_) {
    if (piece.begin == bytes && piece.bytes == count) return piece.memory.get();
    if (bytes < piece.begin + piece.bytes && piece.begin < bytes + count) return nullptr;
  }
  Result<OwnMemory> memory = driver_.wrap(bytes, count);
  if (!memory.ok()) return nullptr;
  return pieces_.emplace_back(Piece{*std::move(memory), bytes, count}).memory.get();
}

// Mapped, the bytes are the host's; to unmap them changes nothing that was only read.
Status Borrowed::giveBack(Queue queue, Memory memory) const {
  const auto piece =
      std::find_if(pieces_.begin(), pieces_.end(), [&](const Piece& p) { return p.memory.get() == memory; });
  AGLOW_TRY(void* bytes, driver_.map(queue, memory, piece->bytes, kMapToRead));
  return driver_.unmap(queue, memory, bytes);
}

Result<WeightMemory> WeightMemory::create(std::shared_ptr<const Driver> driver, bool sharesMemory) {
  WeightMemory memory;
  AGLOW_TRY(memory.queue_, driver->makeQueue());
  memory.driver_ = std::move(driver);
  memory.sharesMemory_ = sharesMemory;
  return memory;
}

// The context lives as long as its buffers.
std::shared_ptr<void> WeightMemory::owned(OwnMemory memory) const {
  struct Owner {
    std::shared_ptr<const Driver> driver;
    OwnMemory memory;
  };
  auto owner = std::make_shared<Owner>(Owner{driver_, std::move(memory)});
  return {owner, owner->memory.get()};
}

Result<std::shared_ptr<void>> WeightMemory::allocate(uint64_t bytes) {
  AGLOW_TRY(OwnMemory memory, driver_->makeBuffer(bytes));
  return owned(std::move(memory));
}

// Small ones lie better beside each other.
std::shared_ptr<void> WeightMemory::shared(const Tensor& tensor) {
  constexpr int64_t kWorthIt = 4096;
  if (!sharesMemory_ || tensor.bytes() < kWorthIt || !isAligned(tensor.data())) return nullptr;
  Result<OwnMemory> memory = driver_->wrap(tensor.data(), static_cast<uint64_t>(tensor.bytes()));
  return memory.ok() ? owned(*std::move(memory)) : nullptr;
}

Status WeightMemory::upload(void* buffer, uint64_t offset, const Tensor& tensor) {
  return driver_->write(queue_.get(), static_cast<Memory>(buffer), offset, tensor.data(), tensor.bytes());
}

Result<std::shared_ptr<void>> PinnedMemory::allocate(uint64_t bytes) {
  AGLOW_TRY(std::shared_ptr<Staging> staging, Staging::create(driver_, bytes));
  std::byte* data = staging->data();
  return std::shared_ptr<void>(std::move(staging), data);
}

}  // namespace aglow::opencl
