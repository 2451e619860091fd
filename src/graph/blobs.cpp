#include "graph/blobs.h"

namespace aglow {

uint64_t BlobStore::add(const Tensor& tensor) {
  for (uint64_t key = tensor.hash();; ++key) {
    const auto [it, fresh] = tensors_.try_emplace(key, tensor);
    if (fresh || it->second == tensor) return key;
  }
}

const Tensor* BlobStore::find(uint64_t key) const {
  const auto it = tensors_.find(key);
  return it == tensors_.end() ? nullptr : &it->second;
}

}  // namespace aglow
