// The block of constants that generated code reads: aligned tensors one after the other, equal bytes only once.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "tensor/tensor.h"

namespace aglow::codegen {

class ConstantPool {
public:
  // The offset of these bytes in the block.
  int64_t place(const Tensor& value);
  // Ends the block with one more line: the hash of what is before it, and the layout of the code that may use it. Other
  // weights of the same layout take its place.
  void seal(uint64_t layout);
  // Whole lines of Tensor::kAlignment bytes, and at least one, so that the block can be declared, mapped and hashed.
  int64_t bytes() const;
  // Of all lines but the seal.
  uint64_t hash() const;
  // The block, as pieces in their order.
  std::vector<std::span<const std::byte>> pieces() const;

private:
  struct Piece {
    Tensor value;
    int64_t offset;
  };
  std::vector<Piece> pieces_;
  std::unordered_multimap<uint64_t, size_t> byHash_;
  int64_t end_ = 0;
  bool sealed_ = false;
};

}  // namespace aglow::codegen
