// Who looks at runs on devices, where instructions begin and end without the host.
#pragma once

#include <string_view>

#include "backends/backend.h"

namespace aglow {

// A device that gets one tells, when the run is over and by its own clock, what each instruction took and what
// travelled between host and device; begin and end are not called then.
class DeviceObserver : public RunObserver {
public:
  virtual void ran(size_t instr, Time begin, Time end) = 0;
  virtual void copied(std::string_view what, int64_t bytes, Time begin, Time end) = 0;
};

}  // namespace aglow
