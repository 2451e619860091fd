// Values of inputs and outputs in files of all kinds, by their endings.
#pragma once

#include <string>

#include "graph/model_value.h"
#include "import/onnx/proto.h"
#include "media/preprocess.h"

namespace aglow::cli {

// .npy, .npz (the array of the input's name, or the only one; FILE.npz:NAME), .json (maps, or numbers in lists), .pb (a
// TensorProto), images, .wav; a folder for a sequence; @none for an empty optional.
Result<ModelValue> readValue(const std::string& file, const onnx::TypeProto& type, const std::string& name = {},
                             const media::Preprocess& images = {});

}  // namespace aglow::cli
