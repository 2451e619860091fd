// Any bytes as a Caffe2 net, in its binary or its text form, through import and all phases. Whatever the net, the
// answer is a program or an error; an internal fault counts as a crash.
#include <cstdlib>
#include <iostream>
#include <span>

#include "dynamic/whole_model.h"
#include "import/caffe2/convert.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aglow;
  auto net = caffe2::parseNet({.bytes = std::as_bytes(std::span(data, size))});
  if (!net.ok()) return 0;
  const auto model = caffe2::toModel(*std::move(net), caffe2::Net{});
  if (!model.ok()) return 0;
  CompileOptions options;
  onnx::ImportOptions import;
  options.backend = kReferenceBackend;
  options.verifyEach = true;
  // Nets have no shapes: small images fit most operators' first operands.
  for (const onnx::ValueInfo& info : model->graph.inputs) import.shapes[info.name] = {1, 2, 4, 4};
  const auto compiled = compileModel(*model, options, import);
  if (compiled.ok()) return 0;
  for (const Error& error : compiled.diagnostics().errors()) {
    if (codeInfo(error.code).exit != ExitCode::Internal) continue;
    std::cerr << error.text() << "\n";
    std::abort();
  }
  return 0;
}
