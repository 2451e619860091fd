// An ONNX model as a file: the inverse of readModel for models whose tensors have their values as raw data.
#pragma once

#include <string>

#include "import/onnx/proto.h"
#include "import/wire/wire_writer.h"
#include "support/file_set.h"

namespace aglow::onnx {

struct WriteOptions {
  // Tensors in a file of their own beside the model, MODEL.data. Models too large for protobuf have it in any case.
  bool external = false;
};

// Gives all tensors of a model that was read their values as raw data, strings apart; UnsupportedFeature for elements
// of less than a byte that a file keeps in another form.
Status settleTensors(Model& model);

// The same model gives the same bytes. Both files appear together, among others or by themselves.
Status addModel(FileSet& files, const std::string& path, const Model& model, const WriteOptions& options = {});
Status writeModel(const std::string& path, const Model& model, const WriteOptions& options = {});
// The file's bytes with all tensors inside.
std::string serialized(const Model& model);

// Single messages of it. Tensors have raw data, which is not copied; values are tensors of known extents.
wire::Writer messageOf(const TensorProto& tensor);
wire::Writer messageOf(const ValueInfo& info);

}  // namespace aglow::onnx
