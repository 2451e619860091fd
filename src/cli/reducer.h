// Finds a small part of a model that still fails as the whole does.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "import/onnx/proto.h"

namespace aglow::cli {

// Whether a candidate still fails.
using StillFails = std::function<Result<bool>(const onnx::Model& candidate)>;

// Keeps ever fewer nodes. What is left reads values that no node makes any more: they become inputs, of the types
// given; where one has none, its node stays. Outputs are what nothing else reads.
Result<onnx::Model> reduceModel(const onnx::Model& model, const std::map<std::string, onnx::TypeProto>& types,
                                const StillFails& fails);

}  // namespace aglow::cli
