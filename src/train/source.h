// A model to be trained: what it was read from is kept, so that it can be written again with other weights.
#pragma once

#include <optional>
#include <string>

#include "import/onnx/proto.h"
#include "support/file.h"

namespace aglow {

struct TrainingSource {
  std::string path;                  // empty: the model was in memory
  std::optional<onnx::Model> model;  // none: the path is a text form (.graph)
  SharedBytes file;                  // of an ONNX model
};

// An ONNX file, a Caffe2 net (with the net that gives its weights), or a text form; Usage for what is compiled already.
Result<TrainingSource> readSource(const std::string& path, const std::string& initPath = {});
Result<TrainingSource> parseSource(const SharedBytes& file, const SharedBytes* init = nullptr);

}  // namespace aglow
