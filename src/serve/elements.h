// Tensors as bytes: numbers as they lie in memory, strings with their lengths before them. The binary extension of HTTP
// and the raw contents of gRPC share this form.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/model_value.h"
#include "serve/limits.h"

namespace aglow::serve {

// What a request says of a tensor, checked: the sizes fit into memory, and no tensor is larger than it may be.
struct TensorHead {
  bool strings = false;
  ElemKind kind = ElemKind::Float32;
  Shape shape;
  int64_t bytes() const { return Type(kind, shape).bytes(); }  // of numbers
};
Result<TensorHead> tensorHead(std::string_view datatype, std::vector<int64_t> shape, const Limits& limits);

// Numbers are read where they lie where their address allows it; `owner` keeps them alive.
Result<ModelValue> fromBytes(const TensorHead& head, std::span<const std::byte> bytes,
                             const std::shared_ptr<const void>& owner);

// Bytes of an answer, and what keeps them alive.
struct Blob {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};
Result<Blob> toBytes(const ModelValue& value);

// What an output of an answer is called and how large it is; a refusal for what the protocol has no form for.
struct OutputHead {
  std::string_view datatype;
  std::span<const int64_t> shape;
};
Result<OutputHead> outputHead(const ModelValue& value);

}  // namespace aglow::serve
