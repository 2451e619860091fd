// Faults of tensors that nobody needs yet.
#pragma once

#include "import/onnx/proto.h"

namespace aglow::onnx {

// The errors that toTensor or toStrings would give, as far as that takes no look at large data.
Status checkTensor(const TensorProto& proto, const Model& model);

}  // namespace aglow::onnx
