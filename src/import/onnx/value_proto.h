// Values outside of a model, as test data sets store them.
#pragma once

#include "import/onnx/proto.h"

namespace aglow::onnx {

// A TensorProto, SequenceProto or OptionalProto, as its type says.
struct ValueProto {
  std::string name;
  bool none = false;
  bool isSequence = false;
  std::vector<TensorProto> tensors;  // one, unless a sequence
};
Result<ValueProto> parseValue(Bytes file, const TypeProto& type);

}  // namespace aglow::onnx
