// Folders with what a model is expected to give: ONNX's test data sets, or the files of `aglow run --output-dir`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/model_value.h"
#include "import/onnx/proto.h"

namespace aglow::cli {

struct DataSet {
  std::string name;                                // of its folder
  std::map<std::string, ModelValue> inputs;        // none in a folder of .npy files
  std::vector<std::optional<ModelValue>> outputs;  // by position; those that no file is there for are empty
};

// The folders below `folder` that hold a data set (test_data_set_*), in order; or the folder itself.
Result<std::vector<std::string>> listDataSets(const std::string& folder);
Result<DataSet> readDataSet(const std::string& folder, const onnx::Graph& graph);

}  // namespace aglow::cli
