// Values of a model's inputs and outputs in files: numpy's, and those of ONNX's test data sets.
#pragma once

#include <string>

#include "graph/model_value.h"
#include "import/onnx/proto.h"

namespace aglow::onnx {

// The type of the tensors that a value is made of, inside of optionals and sequences. UnsupportedFeature when there is
// no such kind.
Result<ElemKind> elementKindOf(const TypeProto& type);
// The type of tensors of a kind (TensorProto.DataType), or of maps to such elements where keys have a kind, or of a
// sequence of either, whatever their shapes.
TypeProto valueType(int32_t elemType, bool sequence, int32_t keyType = 0);
// Whether a value of the type is a sequence, when it is there.
bool isSequence(const TypeProto& type);

// FILE.npy; a folder with 0.npy, 1.npy, … for a sequence; the word @none for an empty optional.
Result<ModelValue> readNpyValue(const std::string& file, const TypeProto& type);

// A .pb file, with the name that it gives its value.
struct NamedValue {
  std::string name;
  ModelValue value;
};
Result<NamedValue> readProtoValue(const std::string& file, const TypeProto& type);

}  // namespace aglow::onnx
