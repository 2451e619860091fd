#include "backends/opencl/driver.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "inst/program.h"

namespace aglow::opencl {

Result<std::shared_ptr<Driver>> Driver::of(const Device& device) {
  static std::mutex mutex;
  static std::map<DeviceId, std::weak_ptr<Driver>> inUse;
  AGLOW_OK(device.api->usable());
  const std::lock_guard lock(mutex);
  std::weak_ptr<Driver>& known = inUse[device.id];
  if (std::shared_ptr<Driver> driver = known.lock(); driver != nullptr && !driver->lost_) return driver;
  auto driver = std::make_shared<Driver>();
  driver->api_ = device.api;
  driver->device_ = device.id;
  int32_t number = kSuccess;
  Context context = device.api->CreateContext(nullptr, 1, &device.id, nullptr, nullptr, &number);
  AGLOW_TRY(driver->context_, owned<OwnContext>(*device.api, "clCreateContext", context, number));
  known = driver;
  return driver;
}

Result<OwnQueue> Driver::makeQueue(Bits properties) const {
  int32_t number = kSuccess;
  Queue queue = api_->CreateCommandQueue(context_.get(), device_, properties, &number);
  return owned<OwnQueue>(*api_, "clCreateCommandQueue", queue, number);
}

Result<OwnMemory> Driver::makeBuffer(uint64_t bytes, Bits kind) const {
  int32_t number = kSuccess;
  const uint64_t some = std::max<uint64_t>(bytes, Program::kAlignment);
  Memory memory = api_->CreateBuffer(context_.get(), kReadWrite | kind, some, nullptr, &number);
  return owned<OwnMemory>(*api_, "clCreateBuffer", memory, number);
}

Result<OwnMemory> Driver::wrap(const std::byte* bytes, uint64_t count) const {
  int32_t number = kSuccess;
  Memory memory =
      api_->CreateBuffer(context_.get(), kReadWrite | kUseHostBytes, count, const_cast<std::byte*>(bytes), &number);
  return owned<OwnMemory>(*api_, "clCreateBuffer", memory, number);
}

Status Driver::write(Queue queue, Memory to, uint64_t offset, const void* from, int64_t bytes, Event* event) const {
  if (bytes == 0) return {};
  const int32_t number =
      api_->EnqueueWriteBuffer(queue, to, 0, offset, static_cast<size_t>(bytes), from, 0, nullptr, event);
  return statusOf("clEnqueueWriteBuffer", number);
}

Status Driver::read(Queue queue, Memory from, uint64_t offset, void* to, int64_t bytes, Event* event) const {
  if (bytes == 0) return {};
  const int32_t number =
      api_->EnqueueReadBuffer(queue, from, 0, offset, static_cast<size_t>(bytes), to, 0, nullptr, event);
  return statusOf("clEnqueueReadBuffer", number);
}

Result<void*> Driver::map(Queue queue, Memory memory, uint64_t bytes, Bits access) const {
  int32_t number = kSuccess;
  void* place = api_->EnqueueMapBuffer(queue, memory, 1, access, 0, bytes, 0, nullptr, nullptr, &number);
  if (number != kSuccess || place == nullptr) return fault("clEnqueueMapBuffer", number);
  return place;
}

}  // namespace aglow::opencl
