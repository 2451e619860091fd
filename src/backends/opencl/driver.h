// The calls of a run: queues, buffers and copies of one device, with faults as results.
#pragma once

#include "backends/opencl/devices.h"
#include "backends/opencl/handles.h"

namespace aglow::opencl {

class Driver {
public:
  static Result<Driver> create(const Device& device);

  const Api& api() const { return *api_; }
  Context context() const { return context_.get(); }
  Result<OwnQueue> makeQueue(Bits properties = 0) const;
  // Never empty: kernels get it as an argument even where they use nothing of it.
  Result<OwnMemory> makeBuffer(uint64_t bytes) const;
  // Enqueue only: the host's memory is used until the queue is finished. The event is made where there is a place for
  // it.
  Status write(Queue queue, Memory to, uint64_t offset, const void* from, int64_t bytes, Event* event = nullptr) const;
  Status read(Queue queue, Memory from, uint64_t offset, void* to, int64_t bytes, Event* event = nullptr) const;
  Status flush(Queue queue) const;
  Status wait(Event event) const;
  Status finish(Queue queue) const;

private:
  const Api* api_ = nullptr;
  DeviceId device_ = nullptr;
  OwnContext context_;
};

}  // namespace aglow::opencl
