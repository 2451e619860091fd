// The calls of a run: queues, buffers and copies of one device, with faults as results.
#pragma once

#include <atomic>
#include <memory>

#include "backends/device/weight_store.h"
#include "backends/opencl/devices.h"
#include "backends/opencl/handles.h"

namespace aglow::opencl {

// All programs on a device at one time share its context and weights.
class Driver {
public:
  static Result<std::shared_ptr<Driver>> of(const Device& device);

  const Api& api() const { return *api_; }
  Context context() const { return context_.get(); }
  device::WeightStore& weights() { return weights_; }
  device::WeightStore& pinned() { return pinned_; }  // weights that travel
  // After a fault of the device: whoever comes next gets a new context.
  void lose() { lost_ = true; }

  Result<OwnQueue> makeQueue(Bits properties = 0) const;
  // Never empty: kernels get it as an argument even where they use nothing of it.
  Result<OwnMemory> makeBuffer(uint64_t bytes, Bits kind = 0) const;
  // Over the host's bytes, which stay there meanwhile.
  Result<OwnMemory> wrap(const std::byte* bytes, uint64_t count) const;
  // What follows is only enqueued: the host's memory is used until the queue is finished. The event is made where there
  // is a place for it.
  Status write(Queue queue, Memory to, uint64_t offset, const void* from, int64_t bytes, Event* event = nullptr) const;
  Status read(Queue queue, Memory from, uint64_t offset, void* to, int64_t bytes, Event* event = nullptr) const;
  // Waits until the host sees the bytes of a buffer: not every driver lets go of a place before it is there.
  Result<void*> map(Queue queue, Memory memory, uint64_t bytes, Bits access) const;
  Status unmap(Queue queue, Memory memory, void* bytes) const {
    return statusOf("clEnqueueUnmapMemObject", api_->EnqueueUnmapMemObject(queue, memory, bytes, 0, nullptr, nullptr));
  }
  Status flush(Queue queue) const { return statusOf("clFlush", api_->Flush(queue)); }
  Status wait(Event event) const { return statusOf("clWaitForEvents", api_->WaitForEvents(1, &event)); }
  Status finish(Queue queue) const { return statusOf("clFinish", api_->Finish(queue)); }

private:
  const Api* api_ = nullptr;
  DeviceId device_ = nullptr;
  OwnContext context_;
  device::WeightStore weights_, pinned_;
  std::atomic<bool> lost_ = false;
};

}  // namespace aglow::opencl
