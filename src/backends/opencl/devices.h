// The OpenCL devices of the machine, and the choice of one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/device/memory_plan.h"
#include "backends/opencl/api.h"

namespace aglow::opencl {

struct Device {
  const Api* api = nullptr;
  Platform platform = nullptr;
  DeviceId id = nullptr;
  int platformNumber = 0, number = 0;  // from 0, as the loader lists them
  std::string platformName, platformVersion, name, vendor, version, driver;
  std::vector<std::string> extensions;
  std::string il;  // what it takes besides source, as "SPIR-V_1.0 SPIR-V_1.2"
  Bits type = 0;
  bool available = false, unifiedMemory = false;
  bool doubles = false, halves = false;     // f64 and f16 arithmetic
  bool pairs = false;                       // f64 of models are two f32 each, as was asked for
  bool ptx = false;                         // kernels may have NVIDIA's own instructions (takesPtx)
  bool exactQuotients = false;              // can round quotients and roots of f32 to nearest
  uint32_t computeUnits = 0, clockMhz = 0;  // 0: it does not tell
  uint64_t globalBytes = 0, localBytes = 0, allocationBytes = 0;  // the last: of one buffer, at most
  uint64_t groupItems = 0, argumentBytes = 0;                     // of a group, of a kernel
  // Items that run in step, where the device tells; floats of the vectors that an item had best compute with.
  uint32_t stepItems = 32, vectorFloats = 1;

  // "0/1", which selects it.
  std::string address() const;
  bool has(std::string_view extension) const;
  device::Limits limits() const;
  // Whether kernels compute f64 in pairs of f32: also sums of what is none, where the device cannot otherwise.
  bool computesPairs() const { return pairs || !doubles; }
};

// All that decides whether what was built or measured for a device holds for it: names and versions of device, driver
// and platform, one a line. Caches have it in their keys.
std::string deviceIdentity(const Device& device);

// What drivers do not say themselves.
inline constexpr const char* kWhyNoWords = "PoCL builds nothing where it cannot write to the folder in POCL_CACHE_DIR";
inline constexpr const char* kWhyNoDevice =
    "Mesa's rusticl shows only those that RUSTICL_ENABLE names, as in RUSTICL_ENABLE=radeonsi, and PoCL none where it "
    "cannot write to its cache, ~/.cache/pocl or the folder in POCL_CACHE_DIR";

// All devices of all platforms. None where platforms have none; Device error without a loader or platform.
Result<std::vector<Device>> devices();

// By `platform/device`: numbers, or a part of their names in any letter case. Either may be left out; the first that
// fits is taken, a GPU before others where nothing is said. Device where there is none, with those there are.
Result<Device> chooseDevice(std::string_view choice);

}  // namespace aglow::opencl
