// What a model says about running on several devices: ONNX's multi-device annotations.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/file.h"

namespace aglow::onnx {

struct DevicePlan {
  std::string configuration;         // whose plan it is
  size_t devices = 0;                // that it is for
  std::vector<std::string> names;    // of these, or none
  std::map<std::string, size_t> at;  // nodes of the main graph, by name or first output: their stage, or their device
};

// The plan of a configuration by its name, or, without one, of the first. Nodes have a pipeline stage, or all of their
// tensors whole on one device; UnsupportedFeature for a tensor that is sharded. Usage with the names there are.
Result<DevicePlan> readDevicePlan(const SharedBytes& file, const std::string& configuration = {});

}  // namespace aglow::onnx
