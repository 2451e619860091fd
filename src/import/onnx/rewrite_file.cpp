// Fields are copied as they lie, but for the graph's: field numbers are those of onnx.proto.
#include "import/onnx/rewrite_file.h"

#include <fmt/format.h>

#include <set>

#include "import/onnx/tensor_data.h"
#include "import/wire/wire.h"
#include "import/wire/wire_writer.h"

namespace aglow::onnx {

namespace {

using wire::Reader;
using wire::Writer;

constexpr uint32_t kGraph = 7;                                           // of a model
constexpr uint32_t kNode = 1, kInitializer = 5;                          // of a graph
constexpr uint32_t kDims = 1, kDataType = 2, kTensorName = 8, kRaw = 9;  // of a tensor
constexpr uint32_t kTensorLocation = 14;
constexpr uint32_t kOutputs = 2;  // of a node
constexpr size_t kLargestFile = (size_t{1} << 31) - 1;

std::string textAt(Reader message, uint32_t field) {
  std::string text;
  while (message.next())
    if (message.field() == field) text = message.text();
  return text;
}

Writer tensorOf(const std::string& name, const Tensor& tensor) {
  Writer w;
  if (tensor.type().rank() > 0) w.packed(kDims, tensor.type().shape().dims());
  w.integer(kDataType, elemInfo(tensor.type().kind()).onnx);
  w.text(kTensorName, name);
  w.borrowed(kRaw, {tensor.data(), static_cast<size_t>(tensor.bytes())});
  return w;
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
    for (const auto& [name, value] : values_) w.message(kInitializer, tensorOf(name, value));
    for (const auto& [name, value] : inside_) w.message(kInitializer, tensorOf(name, value));
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
