#include "import/model_file.h"

#include <optional>

#include "import/caffe2/convert.h"
#include "import/onnx/departures.h"

namespace aglow {

namespace {

// A Caffe2 net with the net that gives its weights, which may be empty.
Result<onnx::Model> parseNets(const SharedBytes& file, const SharedBytes* init) {
  AGLOW_TRY(caffe2::Net predict, caffe2::parseNet(file));
  std::optional<caffe2::Net> weights;
  if (init != nullptr) {
    auto parsed = caffe2::parseNet(*init);
    if (!parsed.ok()) return std::move(parsed).error().at("init net");
    weights = *std::move(parsed);
  }
  return caffe2::toModel(std::move(predict), std::move(weights));
}

// An ONNX model that says what it means, mended where it departs from the standard.
Result<onnx::Model> parseOnnx(const SharedBytes& file, const std::string& folder) {
  AGLOW_TRY(onnx::Model model, onnx::parseModel(file, folder));
  // Before IR version 3 there was one opset.
  if (model.opsets.empty() && (model.irVersion == 1 || model.irVersion == 2)) model.opsets[""] = 1;
  if (model.opsets.empty())
    return Error{.code = Code::BadGraph, .message = "the model does not say which opset it is written for"};
  onnx::mend(model);
  return model;
}

}  // namespace

Result<onnx::Model> parseModelFile(const SharedBytes& file, const std::string& folder, const SharedBytes* init) {
  AGLOW_TRY(const bool isNet, caffe2::looksLikeNet(file));
  if (isNet) return parseNets(file, init);
  if (init != nullptr) {
    AGLOW_OK(parseOnnx(file, folder));
    return Error{.code = Code::Usage,
                 .message = "an init net belongs to a Caffe2 net, but this is an ONNX model",
                 .where = {},
                 .hint = "leave --init out"};
  }
  return parseOnnx(file, folder);
}

Result<onnx::Model> readModelFile(const std::string& path, const std::string& initPath) {
  const size_t slash = path.rfind('/');
  AGLOW_TRY(const SharedBytes file, openFile(path));
  SharedBytes init;
  if (!initPath.empty()) {
    AGLOW_TRY(init, openFile(initPath));
  }
  auto model = parseModelFile(file, slash == std::string::npos ? "." : path.substr(0, slash + 1),
                              initPath.empty() ? nullptr : &init);
  if (!model.ok()) return std::move(model).error().at(path);
  return model;
}

}  // namespace aglow
