// Objects of OpenCL that are released with their owner.
#pragma once

#include <utility>

#include "backends/opencl/api.h"

namespace aglow::opencl {

template <class T, int32_t (*Api::*Release)(T)>
class Handle {
public:
  Handle() = default;
  Handle(const Api& api, T handle) : api_(&api), handle_(handle) {}
  Handle(Handle&& other) noexcept { *this = std::move(other); }
  Handle& operator=(Handle&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() {
    if (handle_ != nullptr && api_->usable().ok()) (api_->*Release)(handle_);
  }

  T get() const { return handle_; }

private:
  const Api* api_ = nullptr;
  T handle_ = nullptr;
};

using OwnContext = Handle<Context, &Api::ReleaseContext>;
using OwnQueue = Handle<Queue, &Api::ReleaseCommandQueue>;
using OwnMemory = Handle<Memory, &Api::ReleaseMemObject>;
using OwnBuilt = Handle<Built, &Api::ReleaseProgram>;
using OwnEvent = Handle<Event, &Api::ReleaseEvent>;
using OwnKernel = Handle<Kernel, &Api::ReleaseKernel>;

// The object that a call made, or what went wrong.
template <class Own, class T>
Result<Own> owned(const Api& api, const char* call, T handle, int32_t number) {
  if (number != kSuccess || handle == nullptr) return fault(call, number);
  return Own(api, handle);
}

}  // namespace aglow::opencl
