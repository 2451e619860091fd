// The backends that every machine has which the build is for; those of devices have tests of their own.
#pragma once

#include <string>
#include <vector>

#include "compile/compile.h"

namespace aglow::testing_support {

inline std::vector<std::string> hostBackends() {
  std::vector<std::string> names;
  for (const std::string_view name : backendNames())
    if (name != "opencl") names.emplace_back(name);
  return names;
}

}  // namespace aglow::testing_support
