#include "backends/opencl/copy_queue.h"

namespace aglow::opencl {

Result<CopyQueue> CopyQueue::create(const Driver& driver, Bits properties) {
  CopyQueue copies;
  AGLOW_TRY(copies.queue_, driver.makeQueue(properties));
  return copies;
}

void CopyQueue::begin(size_t transfers) {
  kept_.clear();
  done_.assign(transfers, nullptr);
}

Status CopyQueue::start(const Driver& driver, Queue kernels, size_t number, const device::Transfer& transfer,
                        Memory memory, uint64_t offset, std::byte* host, Event* place) {
  if (transfer.bytes == 0) return {};
  const Api& api = driver.api();
  Event marker = nullptr, done = nullptr;
  AGLOW_OK(statusOf("clEnqueueMarkerWithWaitList", api.EnqueueMarkerWithWaitList(kernels, 0, nullptr, &marker)));
  const OwnEvent before(api, marker);
  // Commands of another queue are waited for only once they have left for the device.
  AGLOW_OK(driver.flush(kernels));
  const auto bytes = static_cast<size_t>(transfer.bytes);
  const int32_t status = transfer.toDevice
                             ? api.EnqueueWriteBuffer(queue_.get(), memory, 0, offset, bytes, host, 1, &marker, &done)
                             : api.EnqueueReadBuffer(queue_.get(), memory, 0, offset, bytes, host, 1, &marker, &done);
  AGLOW_OK(statusOf(transfer.toDevice ? "clEnqueueWriteBuffer" : "clEnqueueReadBuffer", status));
  done_[number] = done;
  if (place != nullptr)
    *place = done;
  else
    kept_.emplace_back(api, done);
  return driver.flush(queue_.get());
}

Status CopyQueue::wait(const Driver& driver, Queue kernels, size_t number) {
  Event done = done_[number];
  if (done == nullptr) return {};
  return statusOf("clEnqueueBarrierWithWaitList", driver.api().EnqueueBarrierWithWaitList(kernels, 1, &done, nullptr));
}

Status CopyQueue::finish(const Driver& driver) const { return driver.finish(queue_.get()); }

}  // namespace aglow::opencl
