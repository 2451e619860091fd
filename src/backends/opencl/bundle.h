// A bundle for devices: kernels and a C file that runs them by OpenCL alone.
#pragma once

#include <string>

#include "backends/cpu/bundle/bundle.h"
#include "codegen/clike/launch.h"

namespace aglow::opencl {

struct BundleFiles {
  std::string host;     // NAME.c
  std::string kernels;  // NAME.cl, which the C file holds as well
};

// Kernels are chosen by the shape of a device; at run time any device does that has as much room.
BundleFiles bundleFiles(const codegen::Bundle& bundle, const codegen::DeviceShape& shape, bool pairs);

// What is the same in all of them, with $name and $NAME for the bundle's name.
const char* bundleIncludes();
const char* bundleHost();
const char* bundleState();

}  // namespace aglow::opencl
