// The times of an observed run's commands, by the device's clock.
#pragma once

#include <chrono>
#include <deque>
#include <string>

#include "backends/device_observer.h"
#include "backends/opencl/handles.h"

namespace aglow::opencl {

// A moment of a command on a queue that profiles, in nanoseconds of the device's clock.
Result<uint64_t> timeOf(const Api& api, Event event, Info moment);

class Timeline {
public:
  explicit Timeline(const Api& api) : api_(api) {}
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;
  ~Timeline();

  // Where the event of the command goes that is enqueued next: of a kernel of an instruction, or of a copy.
  Event* kernel(size_t instr) { return add({.instr = instr}); }
  Event* copy(std::string what, int64_t bytes) { return add({.what = std::move(what), .bytes = bytes}); }

  // When all commands are done. The kernels of one instruction count as one stretch of time.
  Status tell(DeviceObserver& observer);

private:
  struct Command {
    size_t instr = 0;
    std::string what = {};  // empty: a kernel
    int64_t bytes = 0;
    Event event = nullptr;  // null where the command was refused
  };

  Event* add(Command command);

  const Api& api_;
  RunObserver::Time begin_ = {};  // when the first was enqueued
  std::deque<Command> commands_;
};

}  // namespace aglow::opencl
