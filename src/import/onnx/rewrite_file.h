// An ONNX file with other values for some of its constants, for instance weights after training: everything else stays
// byte by byte what it was.
#pragma once

#include <map>
#include <string>

#include "import/onnx/proto.h"
#include "support/file_set.h"
#include "tensor/tensor.h"

namespace aglow::onnx {

// New values of the main graph by name: of initializers, or of nodes, whose place an initializer takes. Data of other
// tensors that lies in files of its own moves into this one. `file` is what `model` was read from; UnsupportedFeature
// when protobuf cannot hold so much.
Status addRewritten(FileSet& files, const std::string& path, const SharedBytes& file, const Model& model,
                    const std::map<std::string, Tensor>& values);

}  // namespace aglow::onnx
