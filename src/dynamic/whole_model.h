// Models compiled whole, for one set of sizes; those that only a run can tell are left to sessions.
#pragma once

#include <string>

#include "compile/compile.h"
#include "import/onnx/importer.h"

namespace aglow {

// A model file (ONNX, a Caffe2 net, or a text form by its ending .graph or .ir) through all phases, or as far as the
// options say. Text forms have their sizes and need no import; packages (.aglow) are compiled already.
Diagnosed<Compilation> compileFile(const std::string& path, const CompileOptions& options,
                                   const onnx::ImportOptions& import = {});
Diagnosed<Compilation> compileModel(const onnx::Model& model, const CompileOptions& options,
                                    const onnx::ImportOptions& import = {});

}  // namespace aglow
