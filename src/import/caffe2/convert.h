// From Caffe2's nets to the structs that ONNX files become, with operators of domain "caffe2": everything after the
// reader is shared.
#pragma once

#include <optional>

#include "import/caffe2/net.h"
#include "tensor/tensor.h"

namespace aglow::caffe2 {

// The net that computes, with the values that the init net gives to its blobs. Blobs are written in place; here every
// write makes a value of its own, and the last one keeps the blob's name. Inputs are the blobs that are read before
// they are written; the file tells neither their element kind nor their shape.
Result<onnx::Model> toModel(Net predict, std::optional<Net> init);

// An operator with a net in an argument names blobs there, so it keeps the blobs' own names in these arguments.
inline constexpr const char* kOperandNames = "operand_names";
inline constexpr const char* kResultNames = "result_names";

// A net within an argument. Its inputs are the blobs it reads before it writes them.
onnx::Graph nestedGraph(Net net);

// The element kind that a GivenTensor*Fill operator makes, if it is one of elements that are supported.
std::optional<ElemKind> givenKind(const onnx::Node& op);
// The values in such an operator's argument, as a vector of that kind; takes over what it can. An error says why not.
Result<Tensor> givenValues(onnx::Attribute values, ElemKind kind);

}  // namespace aglow::caffe2
