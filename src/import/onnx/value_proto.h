// Values outside of a model, as test data sets store them.
#pragma once

#include "import/onnx/proto.h"

namespace aglow::onnx {

// Keys, and values in as many tensors of one element, or fewer of several.
struct MapProto {
  std::vector<int64_t> keys;
  std::vector<std::string> stringKeys;
  std::vector<TensorProto> values;
};

// A TensorProto, SequenceProto, MapProto or OptionalProto, as its type says.
struct ValueProto {
  std::string name;
  bool none = false;
  bool isSequence = false;
  std::vector<TensorProto> tensors;  // one, unless a sequence
  std::vector<MapProto> maps;        // instead of tensors
};
Result<ValueProto> parseValue(Bytes file, const TypeProto& type);

}  // namespace aglow::onnx
