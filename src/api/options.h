// What callers of the C interface say about compiling.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "aglow/aglow.h"
#include "compile/compile.h"
#include "import/onnx/importer.h"

struct aglow_options {
  aglow::onnx::ImportOptions import;
  aglow::CompileOptions compile;
  aglow::BackendOptions backend;
  std::map<std::string, std::vector<int64_t>> prepared = {};  // of sessions
  bool pad = false;
  aglow_warning warning = nullptr;  // called with what is accepted
  void* warningContext = nullptr;
  std::function<bool()> stop = nullptr;  // asked by runs
};

namespace aglow {

const aglow_options& orDefault(const aglow_options* options);
// How to import a model that came from a file, or from memory.
onnx::ImportOptions importOptions(const aglow_options& options, std::string_view file);

}  // namespace aglow
