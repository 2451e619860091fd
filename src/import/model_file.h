// Model files of any kind that can be imported: what a file is, its content says.
#pragma once

#include <string>

#include "import/onnx/proto.h"
#include "support/file.h"

namespace aglow {

// An ONNX model, or a Caffe2 net (binary or text); `initPath` names the net that gives a Caffe2 net's weights.
Result<onnx::Model> readModelFile(const std::string& path, const std::string& initPath = {});
// The same of bytes. External data of an ONNX model is looked for below the folder, and refused when it is empty.
Result<onnx::Model> parseModelFile(const SharedBytes& file, const std::string& folder = {},
                                   const SharedBytes* init = nullptr);

}  // namespace aglow
