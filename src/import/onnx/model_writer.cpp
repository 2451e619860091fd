// Field numbers are those of onnx.proto.
#include "import/onnx/model_writer.h"

#include <filesystem>

namespace aglow::onnx {

namespace {

using wire::Writer;

// Readers built on libprotobuf refuse messages of 2 GiB; names and nodes need some of it.
constexpr size_t kLargestFile = (size_t{1} << 31) - (size_t{1} << 26);
// Smaller tensors stay in the model, where tools look for shapes and axes.
constexpr size_t kLeastExternal = 1024;

Writer pairOf(const std::string& key, const std::string& value) {
  Writer w;
  w.text(1, key);
  w.text(2, value);
  return w;
}

// Where tensors go when they leave the model.
class ExternalData {
public:
  explicit ExternalData(std::string name) : name_(std::move(name)) {}

  StringPairs add(Bytes bytes) {
    // Whole pages can be mapped by themselves; small tensors only need alignment.
    constexpr size_t kPage = 4096, kLine = 64;
    const size_t unit = bytes.size() >= kPage ? kPage : kLine;
    const size_t padding = (unit - size_ % unit) % unit;
    static const std::byte zeros[kPage] = {};
    if (padding > 0) pieces_.push_back({zeros, padding});
    const size_t offset = size_ + padding;
    pieces_.push_back(bytes);
    size_ = offset + bytes.size();
    return {{"location", name_}, {"offset", std::to_string(offset)}, {"length", std::to_string(bytes.size())}};
  }

  const std::vector<Bytes>& pieces() const { return pieces_; }

private:
  std::string name_;
  std::vector<Bytes> pieces_;
  size_t size_ = 0;
};

Writer tensorOf(const TensorProto& t, ExternalData* external) {
  AGLOW_CHECK(t.data.empty() && !t.isExternal, "export keeps values as raw data");
  Writer w;
  if (!t.dims.empty()) w.packed(1, t.dims);
  w.integer(2, t.dataType);
  if (!t.name.empty()) w.text(8, t.name);
  if (external == nullptr || t.raw.size() < kLeastExternal) {
    w.borrowed(9, t.raw);
    return w;
  }
  for (const auto& [key, value] : external->add(t.raw)) w.message(13, pairOf(key, value));
  w.integer(14, 1);
  return w;
}

Writer typeOf(const TypeProto& type) {
  AGLOW_CHECK(type.kind == TypeProto::Kind::Tensor, "export declares tensors alone");
  Writer shape;
  for (const Dim& dim : type.dims) {
    Writer item;
    item.integer(1, dim.value);
    shape.message(1, item);
  }
  Writer tensor;
  tensor.integer(1, type.elemType);
  if (type.hasShape) tensor.message(2, shape);
  Writer w;
  w.message(1, tensor);
  return w;
}

Writer valueOf(const ValueInfo& info) {
  Writer w;
  w.text(1, info.name);
  w.message(2, typeOf(info.type));
  return w;
}

Writer attributeOf(const Attribute& a) {
  Writer w;
  w.text(1, a.name);
  switch (a.type) {
    case AttributeType::Float:
      w.real(2, a.f);
      break;
    case AttributeType::Int:
      w.integer(3, a.i);
      break;
    case AttributeType::String:
      w.text(4, a.s);
      break;
    case AttributeType::Tensor:
      w.message(5, tensorOf(*a.t, nullptr));
      break;
    case AttributeType::Floats:
      for (const float value : a.floats) w.real(7, value);
      break;
    case AttributeType::Ints:
      for (const int64_t value : a.ints) w.integer(8, value);
      break;
    case AttributeType::Strings:
      for (const std::string& value : a.strings) w.text(9, value);
      break;
    default:
      AGLOW_CHECK(false, "export makes no attribute of this type");
  }
  w.integer(20, static_cast<int64_t>(a.type));
  return w;
}

Writer nodeOf(const Node& node) {
  Writer w;
  for (const std::string& name : node.inputs) w.text(1, name);
  for (const std::string& name : node.outputs) w.text(2, name);
  w.text(3, node.name);
  w.text(4, node.opType);
  for (const Attribute& attribute : node.attributes) w.message(5, attributeOf(attribute));
  if (!node.domain.empty()) w.text(7, node.domain);
  return w;
}

Writer graphOf(const Graph& graph, ExternalData* external) {
  Writer w;
  for (const Node& node : graph.nodes) w.message(1, nodeOf(node));
  w.text(2, graph.name);
  for (const TensorProto& t : graph.initializers) w.message(5, tensorOf(t, external));
  for (const ValueInfo& info : graph.inputs) w.message(11, valueOf(info));
  for (const ValueInfo& info : graph.outputs) w.message(12, valueOf(info));
  for (const ValueInfo& info : graph.valueInfo) w.message(13, valueOf(info));
  return w;
}

Writer modelOf(const Model& model, ExternalData* external) {
  Writer w;
  w.integer(1, model.irVersion);
  w.text(2, model.producer);
  w.text(3, model.producerVersion);
  w.message(7, graphOf(model.graph, external));
  for (const auto& [domain, version] : model.opsets) {
    Writer opset;
    opset.text(1, domain);
    opset.integer(2, version);
    w.message(8, opset);
  }
  for (const auto& [key, value] : model.metadata) w.message(14, pairOf(key, value));
  return w;
}

}  // namespace

Writer messageOf(const TensorProto& tensor) { return tensorOf(tensor, nullptr); }
Writer messageOf(const ValueInfo& info) { return valueOf(info); }

Status addModel(FileSet& files, const std::string& path, const Model& model, const WriteOptions& options) {
  size_t bytes = 0;
  for (const TensorProto& t : model.graph.initializers) bytes += t.raw.size();
  if (!options.external && bytes < kLargestFile) return files.add(path, modelOf(model, nullptr).pieces());
  ExternalData data(std::filesystem::path(path).filename().string() + ".data");
  const Writer file = modelOf(model, &data);
  AGLOW_OK(files.add(path + ".data", data.pieces()));
  return files.add(path, file.pieces());
}

Status writeModel(const std::string& path, const Model& model, const WriteOptions& options) {
  return writeTogether([&](FileSet& files) { return addModel(files, path, model, options); });
}

std::string serialized(const Model& model) {
  std::string bytes;
  const Writer file = modelOf(model, nullptr);
  for (const Bytes piece : file.pieces()) bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  return bytes;
}

}  // namespace aglow::onnx
