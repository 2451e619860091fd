// The kernels of programs, each text once, built by the driver.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/opencl/devices.h"
#include "backends/opencl/handles.h"
#include "codegen/clike/launch.h"

namespace aglow::opencl {

class KernelSet {
public:
  // The number of the kernel with this text.
  size_t add(const std::string& text);
  size_t count() const { return texts_.size(); }

  // From what is kept in the folder of the code cache, or by the driver's compiler, and kept then. Device with the text
  // and the compiler's words where one cannot be built.
  Status build(const Device& device, Context context, const std::string& cache);
  Result<OwnKernel> make(size_t number) const;

  // All kernels, after what they stand on; kernel n is nameOf(n).
  std::string source() const;
  static std::string nameOf(size_t number);

private:
  Error blame(const Device& device, Context context, const Error& whole, const std::string& log) const;

  const Api* api_ = nullptr;
  std::map<std::string, size_t> numbers_;
  std::vector<std::string> texts_;
  OwnBuilt program_;
};

}  // namespace aglow::opencl
