// What a device can do at most.
#pragma once

#include <optional>
#include <string>

#include "backends/opencl/devices.h"
#include "support/machine.h"

namespace aglow::opencl {

// Multiply-adds of f32, and bytes that kernels read and write, a second; by kernels that do nothing else, in about half
// a second, and kept in the folder of the code cache for this device with this driver. Measured again, the best counts:
// others may have used the device.
Result<MachinePeak> measuredPeak(const Device& device, const std::string& cache, bool again = false);
// The same where it was measured before.
std::optional<MachinePeak> keptPeak(const Device& device, const std::string& cache);

}  // namespace aglow::opencl
