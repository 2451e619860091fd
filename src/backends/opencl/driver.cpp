#include "backends/opencl/driver.h"

#include <algorithm>

#include "inst/program.h"

namespace aglow::opencl {

Result<Driver> Driver::create(const Device& device) {
  Driver driver;
  driver.api_ = device.api;
  driver.device_ = device.id;
  int32_t number = kSuccess;
  Context context = device.api->CreateContext(nullptr, 1, &device.id, nullptr, nullptr, &number);
  AGLOW_TRY(driver.context_, owned<OwnContext>(*device.api, "clCreateContext", context, number));
  return driver;
}

Result<OwnQueue> Driver::makeQueue(Bits properties) const {
  int32_t number = kSuccess;
  Queue queue = api_->CreateCommandQueue(context_.get(), device_, properties, &number);
  return owned<OwnQueue>(*api_, "clCreateCommandQueue", queue, number);
}

Result<OwnMemory> Driver::makeBuffer(uint64_t bytes) const {
  int32_t number = kSuccess;
  Memory memory =
      api_->CreateBuffer(context_.get(), kReadWrite, std::max<uint64_t>(bytes, Program::kAlignment), nullptr, &number);
  return owned<OwnMemory>(*api_, "clCreateBuffer", memory, number);
}

Status Driver::write(Queue queue, Memory to, uint64_t offset, const void* from, int64_t bytes, Event* event) const {
  if (bytes == 0) return {};
  const int32_t number =
      api_->EnqueueWriteBuffer(queue, to, 0, offset, static_cast<size_t>(bytes), from, 0, nullptr, event);
  return number == kSuccess ? Status() : fault("clEnqueueWriteBuffer", number);
}

Status Driver::read(Queue queue, Memory from, uint64_t offset, void* to, int64_t bytes, Event* event) const {
  if (bytes == 0) return {};
  const int32_t number =
      api_->EnqueueReadBuffer(queue, from, 0, offset, static_cast<size_t>(bytes), to, 0, nullptr, event);
  return number == kSuccess ? Status() : fault("clEnqueueReadBuffer", number);
}

Status Driver::flush(Queue queue) const {
  const int32_t number = api_->Flush(queue);
  return number == kSuccess ? Status() : fault("clFlush", number);
}

Status Driver::wait(Event event) const {
  const int32_t number = api_->WaitForEvents(1, &event);
  return number == kSuccess ? Status() : fault("clWaitForEvents", number);
}

Status Driver::finish(Queue queue) const {
  const int32_t number = api_->Finish(queue);
  return number == kSuccess ? Status() : fault("clFinish", number);
}

}  // namespace aglow::opencl
