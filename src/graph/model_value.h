// A value that a model takes or gives at run time: a tensor, a sequence of tensors, or an empty optional.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace aglow {

struct ModelValue {
  bool none = false;
  bool isSequence = false;
  std::vector<Tensor> tensors;  // one, unless a sequence

  static ModelValue of(Tensor tensor) { return {.none = false, .isSequence = false, .tensors = {std::move(tensor)}}; }
  static ModelValue sequence(std::vector<Tensor> tensors) {
    return {.none = false, .isSequence = true, .tensors = std::move(tensors)};
  }
  static ModelValue absent() { return {.none = true, .isSequence = false, .tensors = {}}; }

  bool isTensor() const { return !none && !isSequence; }
  const Tensor& tensor() const { return tensors.front(); }
};

}  // namespace aglow
