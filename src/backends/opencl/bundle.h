// A bundle for devices: kernels and a C file that runs them by OpenCL alone.
#pragma once

#include <optional>
#include <string>

#include "backends/cpu/bundle/bundle.h"
#include "backends/device/spirv.h"
#include "backends/opencl/devices.h"
#include "codegen/clike/launch.h"

namespace aglow::opencl {

struct BundleFiles {
  std::string host;     // NAME.c
  std::string kernels;  // NAME.cl, which the C file holds as well
  std::string spirv;    // NAME.spv, likewise; empty: none is asked for
};

// Kernels are chosen by the shape of a device, which has room for all buffers, or it is TooLarge; at run time any
// device does that has as much. With a target there is SPIR-V beside the source, for devices that take it. Where the
// device computes f64 in pairs, as was asked for, they are two f32 each wherever it runs.
Result<BundleFiles> bundleFiles(const codegen::Bundle& bundle, const codegen::DeviceShape& shape, const Device& device,
                                const std::optional<device::SpirvTarget>& target);

// What is the same in all of them, with $name and $NAME for the bundle's name.
const char* bundleIncludes();
const char* bundleSpirv();
const char* bundleSourceAlone();
const char* bundleHost();
const char* bundleState();

}  // namespace aglow::opencl
