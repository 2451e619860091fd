#include "backends/opencl/timeline.h"

#include <algorithm>

namespace aglow::opencl {

Result<uint64_t> timeOf(const Api& api, Event event, Info moment) {
  uint64_t nanoseconds = 0;
  AGLOW_OK(statusOf("clGetEventProfilingInfo",
                    api.GetEventProfilingInfo(event, moment, sizeof nanoseconds, &nanoseconds, nullptr)));
  return nanoseconds;
}

Timeline::~Timeline() {
  for (const Command& command : commands_)
    if (command.event != nullptr) api_.ReleaseEvent(command.event);
}

Event* Timeline::add(Command command) {
  if (commands_.empty()) begin_ = std::chrono::steady_clock::now();
  return &commands_.emplace_back(std::move(command)).event;
}

Status Timeline::tell(DeviceObserver& observer) {
  std::erase_if(commands_, [](const Command& command) { return command.event == nullptr; });
  if (commands_.empty()) return {};
  AGLOW_TRY(const uint64_t zero, timeOf(api_, commands_.front().event, kProfileQueued));
  const auto at = [&](uint64_t time) {
    return begin_ + std::chrono::nanoseconds(static_cast<int64_t>(time) - static_cast<int64_t>(zero));
  };
  for (size_t i = 0; i < commands_.size();) {
    const Command& first = commands_[i];
    AGLOW_TRY(const uint64_t begin, timeOf(api_, first.event, kProfileStart));
    size_t last = i;
    while (first.what.empty() && last + 1 < commands_.size() && commands_[last + 1].what.empty() &&
           commands_[last + 1].instr == first.instr)
      ++last;
    AGLOW_TRY(const uint64_t end, timeOf(api_, commands_[last].event, kProfileEnd));
    if (first.what.empty())
      observer.ran(first.instr, at(begin), at(end));
    else
      observer.copied(first.what, first.bytes, at(begin), at(end));
    i = last + 1;
  }
  return {};
}

}  // namespace aglow::opencl
