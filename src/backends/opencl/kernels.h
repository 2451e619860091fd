// The kernels of programs, each text once, built by the driver.
#pragma once

#include <string>

#include "backends/device/kernel_texts.h"
#include "backends/device/spirv.h"
#include "backends/opencl/devices.h"
#include "backends/opencl/handles.h"

namespace aglow::opencl {

// Whether its driver takes what kernels have of NVIDIA's own instructions: found out by building some.
bool takesPtx(const Device& device);

// For SPIR-V that comes to the same as source for its driver: what kernels ask that compiler.
device::SpirvTarget spirvTarget(const Device& device);

class KernelSet : public device::KernelTexts {
public:
  // From what is kept in the folder of the code cache, or by the driver's compiler, and kept then. Device with the text
  // and the compiler's words where one cannot be built.
  Status build(const Device& device, Context context, const std::string& cache);
  // One of them, for groups of so many items. TooLarge where the device has no room for such a group: its registers and
  // its local memory are known once the kernel is built.
  Result<OwnKernel> make(size_t number, size_t groupItems = 1) const;

private:
  Error blame(const Device& device, Context context, const Error& whole, const std::string& log) const;

  Device device_;
  OwnBuilt program_;
};

}  // namespace aglow::opencl
