// Maps of a model as JSON: a map is an object, a sequence of maps a list of them. Keys that are integers are written as
// strings, since JSON has no others; numbers that are not finite are "NaN", "Infinity" and "-Infinity".
#pragma once

#include <string>

#include "graph/model_value.h"
#include "import/onnx/proto.h"

namespace aglow::cli {

// UnsupportedFeature where a string is not UTF-8.
Result<std::string> mapsText(const ModelValue& value);
// BadNpy where the file holds something else than the type asks for.
Result<ModelValue> readMaps(const std::string& file, const onnx::TypeProto& type);

}  // namespace aglow::cli
