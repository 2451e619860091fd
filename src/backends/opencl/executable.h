// Programs on a device.
#pragma once

#include <memory>
#include <vector>

#include "backends/backend.h"
#include "backends/opencl/devices.h"
#include "codegen/clike/launch.h"

namespace aglow::opencl {

// TooLarge where the device has no room for the programs, before anything is allocated there. Device with the text and
// the compiler's words where a kernel cannot be built. A device that shares the host's memory uses it where that is,
// but for programs that may use only so many bytes of its own (0: all). As many runs go side by side as there is room
// for.
Result<std::unique_ptr<Executable>> makeExecutable(std::vector<Program> programs, const Device& device,
                                                   const codegen::DeviceShape& shape, int64_t memoryBytes,
                                                   const BackendOptions& options, const std::string& cache);

}  // namespace aglow::opencl
