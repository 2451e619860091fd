// A tensor of strings, which may hold any bytes. Programs have no such tensors: they live between compiled parts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tensor/type.h"

namespace aglow {

class StringTensor {
public:
  // As many strings as the shape has elements.
  StringTensor(Shape shape, std::vector<std::string> strings)
      : shape_(std::move(shape)), strings_(std::make_shared<const std::vector<std::string>>(std::move(strings))) {
    AGLOW_CHECK(shape_.elements() == std::ssize(*strings_), "a string tensor with too few or too many strings");
  }

  const Shape& shape() const { return shape_; }
  const std::vector<std::string>& strings() const { return *strings_; }
  std::string text() const { return "string" + shape_.text(); }
  bool operator==(const StringTensor& other) const { return shape_ == other.shape_ && *strings_ == *other.strings_; }

private:
  Shape shape_;
  std::shared_ptr<const std::vector<std::string>> strings_;
};

}  // namespace aglow
