// Any bytes as an ONNX model, through import and all phases. Whatever the model, the answer is a program or an error;
// an internal fault counts as a crash.
#include <cstdlib>
#include <iostream>
#include <span>

#include "dynamic/whole_model.h"
#include "import/model_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aglow;
  const auto model = parseModelFile({.bytes = std::as_bytes(std::span(data, size)), .owner = nullptr});
  if (!model.ok()) return 0;
  CompileOptions options;
  onnx::ImportOptions import;
  options.backend = kReferenceBackend;
  options.verifyEach = true;
  // Open dimensions get a small size, so that models of any batch are looked into.
  for (const onnx::ValueInfo& info : model->graph.inputs)
    for (const onnx::Dim& dim : info.type.dims)
      if (dim.kind == onnx::Dim::Kind::Symbol) import.dims[dim.symbol] = 2;
  const auto compiled = compileModel(*model, options, import);
  if (compiled.ok()) return 0;
  for (const Error& error : compiled.diagnostics().errors()) {
    if (codeInfo(error.code).exit != ExitCode::Internal) continue;
    std::cerr << error.text() << "\n";
    std::abort();
  }
  return 0;
}
