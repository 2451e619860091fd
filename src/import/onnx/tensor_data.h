// Tensors of an ONNX file as Aglow's own: in place where the file's bytes can be used as they lie, else converted.
#pragma once

#include "graph/model_value.h"
#include "import/onnx/proto.h"
#include "tensor/tensor.h"

namespace aglow::onnx {

// The kind that a TensorProto.DataType stands for; `unknown` is the code for a number that the standard does not have.
Result<ElemKind> elemKindOf(int64_t dataType, Code unknown);

// Errors name the tensor. Nothing is allocated before the number of values is known to fit the shape.
// The Tensor keeps the model's bytes alive; the model itself may go.
Result<Tensor> toTensor(const TensorProto& proto, const Model& model);
// Filled up with zeros; TooLarge when the shape asks for more than kMaxDenseBytes.
Result<Tensor> toTensor(const SparseTensorProto& proto, const Model& model);

inline constexpr int32_t kStringType = 8;  // TensorProto.DataType

// Strings are any bytes.
Result<StringTensor> toStrings(const TensorProto& proto);
// A tensor of numbers or of strings.
Result<ModelValue> toValue(const TensorProto& proto, const Model& model);

// A sparse tensor's shape is a mere claim of the file, so it may not decide on all of the memory.
inline constexpr int64_t kMaxDenseBytes = int64_t{1} << 26;

}  // namespace aglow::onnx
