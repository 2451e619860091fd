// Fields are copied as they lie, but for the graph's: field numbers are those of onnx.proto.
#include "import/onnx/rewrite_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/model_writer.h"
#include "import/onnx/tensor_data.h"
#include "import/onnx/tensor_proto.h"
#include "import/wire/wire.h"

namespace aglow::onnx {

namespace {

using wire::Reader;
using wire::Writer;

constexpr uint32_t kGraph = 7;                                // of a model
constexpr uint32_t kNode = 1, kInitializer = 5, kInput = 11;  // of a graph
constexpr uint32_t kTensorName = 8, kTensorLocation = 14;     // of a tensor
constexpr uint32_t kOutputs = 2;                              // of a node
constexpr int64_t kInitializersAlone = 4;                     // since this version they need not be inputs as well
constexpr size_t kLargestFile = (size_t{1} << 31) - 1;

std::string textAt(Reader message, uint32_t field) {
  std::string text;
  while (message.next())
    if (message.field() == field) text = message.text();
  return text;
}

class Rewriting {
public:
  Rewriting(const Model& model, const std::map<std::string, Tensor>& values) : model_(model), values_(values) {}

  Writer graph(Reader graph) {
    Writer w;
    while (graph.next()) {
      if (graph.field() == kNode && isReplaced(graph.message("NodeProto"))) continue;
      if (graph.field() == kInitializer) {
        const Reader proto = graph.message("TensorProto");
        const std::string name = textAt(proto, kTensorName);
        if (values_.contains(name)) continue;
        if (isExternal(proto)) {
          inside(name);
          continue;
        }
      }
      graph.copyTo(w);
    }
    for (const auto* tensors : {&values_, &std::as_const(inside_)})
      for (const auto& [name, value] : *tensors) w.message(kInitializer, messageOf(protoOf(name, value, keep_)));
    for (const auto& [name, value] : values_)
      if (model_.irVersion < kInitializersAlone && !isInput(name))
        w.message(kInput, messageOf(infoOf(name, value.type())));
    return w;
  }

  const Status& status() const { return status_; }

private:
  static bool isExternal(Reader proto) {
    while (proto.next())
      if (proto.field() == kTensorLocation) return proto.integer() == 1;
    return false;
  }

  // Whether all that the node gives is given by values now.
  bool isReplaced(Reader node) const {
    bool any = false;
    while (node.next()) {
      if (node.field() != kOutputs) continue;
      const std::string name = node.text();
      if (!name.empty() && !values_.contains(name)) return false;
      any = any || !name.empty();
    }
    return any;
  }

  bool isInput(const std::string& name) const {
    return std::any_of(model_.graph.inputs.begin(), model_.graph.inputs.end(),
                       [&](const ValueInfo& info) { return info.name == name; });
  }

  void inside(const std::string& name) {
    for (const TensorProto& proto : model_.graph.initializers) {
      if (proto.name != name) continue;
      Result<Tensor> tensor = toTensor(proto, model_);
      if (tensor.ok())
        inside_.emplace(name, *std::move(tensor));
      else if (status_.ok())
        status_ = std::move(tensor).error();
    }
  }

  const Model& model_;
  const std::map<std::string, Tensor>& values_;
  std::map<std::string, Tensor> inside_;
  std::vector<std::shared_ptr<const void>> keep_;
  Status status_;
};

}  // namespace

Status addRewritten(FileSet& files, const std::string& path, const SharedBytes& file, const Model& model,
                    const std::map<std::string, Tensor>& values) {
  AGLOW_OK(file.load(file.bytes));
  Rewriting rewriting(model, values);
  Writer out;
  AGLOW_OK(wire::parse(file, "ModelProto", [&](Reader r) {
    while (r.next()) {
      if (r.field() == kGraph)
        out.message(kGraph, rewriting.graph(r.message("GraphProto")));
      else
        r.copyTo(out);
    }
  }));
  AGLOW_OK(rewriting.status());
  if (out.size() > kLargestFile)
    return Error{.code = Code::UnsupportedFeature,
                 .message = fmt::format("the model has {} bytes, and protobuf files have less than 2 GiB", out.size())};
  return files.add(path, out.pieces());
}

}  // namespace aglow::onnx
