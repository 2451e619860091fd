// Which element kind a net's inputs have, as far as the operators that read them tell.
#pragma once

#include <map>
#include <string>

#include "import/onnx/proto.h"
#include "tensor/elem_kind.h"

namespace aglow::caffe2 {

class OperandKinds {
public:
  // Notes what an operator expects of the blobs it reads.
  void add(const onnx::Node& op);
  // What the first reader with a particular wish expects; f32 if none has one.
  ElemKind of(const std::string& blob) const;

private:
  std::map<std::string, ElemKind> kinds_;
};

}  // namespace aglow::caffe2
