// Tensors and their types as ONNX files have them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "import/onnx/proto.h"
#include "tensor/tensor.h"

namespace aglow::onnx {

// The values as raw data, kinds narrower than a byte packed; quantized kinds as the integers that they are. `keep` owns
// the bytes.
TensorProto protoOf(const std::string& name, const Tensor& tensor, std::vector<std::shared_ptr<const void>>& keep);

ValueInfo infoOf(const std::string& name, const Type& type);

}  // namespace aglow::onnx
