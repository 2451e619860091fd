// What a file is when it is not an ONNX model, so that the user hears more than "malformed".
#pragma once

#include "support/file.h"

namespace aglow::onnx {

// A BadFile error, put in words a user understands where the file is of a kind often taken for a model.
Error explained(Error error, const SharedBytes& file);

}  // namespace aglow::onnx
