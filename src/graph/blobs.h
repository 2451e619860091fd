// The bytes of constants that are too large to stand in the text: kept by hash, in memory or in a file beside the text.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tensor/tensor.h"

namespace aglow {

// Tensors by key. The key is the tensor's hash, or the next free number where another tensor has that hash.
class BlobStore {
public:
  uint64_t add(const Tensor& tensor);
  // Null when there is none.
  const Tensor* find(uint64_t key) const;
  const std::map<uint64_t, Tensor>& tensors() const { return tensors_; }

private:
  std::map<uint64_t, Tensor> tensors_;
};

}  // namespace aglow
