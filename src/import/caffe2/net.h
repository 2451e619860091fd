// A Caffe2 NetDef as plain structs: what the file says, operators and arguments in the form that ONNX's have.
#pragma once

#include <string>
#include <vector>

#include "import/onnx/proto.h"
#include "support/file.h"

namespace aglow::caffe2 {

// The domain of Caffe2's operators, and the version that their rows are written for.
inline constexpr const char* kDomain = "caffe2";
inline constexpr int64_t kVersion = 1;

// An argument that holds nothing is an empty list of ints; nested nets are graphs as converted() makes them.
struct Net {
  std::string name;
  std::vector<onnx::Node> ops;
  std::vector<onnx::Attribute> args;
  std::vector<std::string> inputs;   // external_input
  std::vector<std::string> outputs;  // external_output
};

// From bytes in protobuf's binary or text form, whichever they are in.
Result<Net> parseNet(const SharedBytes& file);
// From bytes in the text form alone.
Result<Net> parseNetText(std::string_view text);

// Whether the bytes are a NetDef rather than an ONNX model: both are protobuf, and neither says what it is.
Result<bool> looksLikeNet(const SharedBytes& file);

// TensorProto.DataType of Caffe2 as ONNX numbers it; 0 where it has no counterpart.
int32_t onnxType(int64_t caffe2Type);

}  // namespace aglow::caffe2
