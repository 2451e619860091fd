// Backends whose device has memory of its own.
#pragma once

#include "backends/backend.h"
#include "memory/latency_model.h"

namespace aglow {

class DeviceBackend : public Backend {
public:
  // What computing and copies take, and how much memory there is. Where it is not that of the host, the phase
  // `transfers` sees to what travels between both, and when.
  virtual LatencyModel latencies() const = 0;
};

}  // namespace aglow
