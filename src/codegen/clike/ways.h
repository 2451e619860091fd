// Which of several ways to write a kernel is taken, where a model of the device gives an order and a measurement may
// give another.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace aglow::codegen {

class Ways {
public:
  virtual ~Ways() = default;
  // The number of the way that is taken; the best by the model comes first. The question says all that the answer may
  // depend on besides the device.
  virtual size_t choose(const std::string& question, std::span<const std::string> ways) const = 0;
};

}  // namespace aglow::codegen
