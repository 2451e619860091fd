// Field numbers are those of onnx.proto.
#include "import/onnx/model_writer.h"

#include <deque>
#include <filesystem>

#include "import/onnx/tensor_data.h"
#include "support/quote.h"

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
  AGLOW_CHECK((t.data.empty() || t.dataType == kStringType) && !t.isExternal, "values are raw data");
  Writer w;
  if (!t.dims.empty()) w.packed(1, t.dims);
  w.integer(2, t.dataType);
  if (!t.name.empty()) w.text(8, t.name);
  if (t.dataType == kStringType) {
    for (const DataChunk& chunk : t.data) w.borrowed(6, chunk.bytes);
    return w;
  }
  if (external == nullptr || t.raw.size() < kLeastExternal) {
    w.borrowed(9, t.raw);
    return w;
  }
  for (const auto& [key, value] : external->add(t.raw)) w.message(13, pairOf(key, value));
  w.integer(14, 1);
  return w;
}

Writer typeOf(const TypeProto& type) {
  using Kind = TypeProto::Kind;
  if (type.kind == Kind::Sequence || type.kind == Kind::Optional) {
    Writer of, w;
    of.message(1, typeOf(*type.elem));
    w.message(type.kind == Kind::Sequence ? 4 : 9, of);
    return w;
  }
  if (type.kind == Kind::Map) {
    Writer map, w;
    map.integer(1, type.elemType);
    map.message(2, typeOf(*type.elem));
    w.message(5, map);
    return w;
  }
  AGLOW_CHECK(type.kind == Kind::Tensor, "a type that is not written");
  Writer shape;
  for (const Dim& dim : type.dims) {
    Writer item;
    if (dim.kind == Dim::Kind::Symbol) item.text(2, dim.symbol);
    if (dim.kind == Dim::Kind::Value) item.integer(1, dim.value);
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

Writer graphOf(const Graph& graph, ExternalData* external);

Writer attributeOf(const Attribute& a) {
  Writer w;
  w.text(1, a.name);
  if (!a.refAttrName.empty()) {
    w.text(21, a.refAttrName);
    w.integer(20, static_cast<int64_t>(a.type));
    return w;
  }
  switch (a.type) {
    case AttributeType::Graph:
      w.message(6, graphOf(*a.g, nullptr));
      break;
    case AttributeType::Graphs:
      for (const Graph& graph : a.graphs) w.message(11, graphOf(graph, nullptr));
      break;
    case AttributeType::Tensors:
      for (const TensorProto& tensor : a.tensors) w.message(10, tensorOf(tensor, nullptr));
      break;
    case AttributeType::Type:
      w.message(14, typeOf(*a.tp));
      break;
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
  if (!node.overload.empty()) w.text(8, node.overload);
  return w;
}

Writer opsetOf(const std::string& domain, int64_t version) {
  Writer opset;
  opset.text(1, domain);
  opset.integer(2, version);
  return opset;
}

Writer functionOf(const Function& function) {
  Writer w;
  w.text(1, function.name);
  for (const std::string& name : function.inputs) w.text(4, name);
  for (const std::string& name : function.outputs) w.text(5, name);
  for (const std::string& name : function.attributes) w.text(6, name);
  for (const Node& node : function.nodes) w.message(7, nodeOf(node));
  for (const auto& [domain, version] : function.opsets) w.message(9, opsetOf(domain, version));
  w.text(10, function.domain);
  for (const Attribute& attribute : function.attributeProtos) w.message(11, attributeOf(attribute));
  if (!function.overload.empty()) w.text(13, function.overload);
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
  for (const auto& [domain, version] : model.opsets) w.message(8, opsetOf(domain, version));
  for (const auto& [key, value] : model.metadata) w.message(14, pairOf(key, value));
  for (const Function& function : model.functions) w.message(25, functionOf(function));
  return w;
}

// What keeps the bytes of tensors, once they are no longer those of the file.
struct Owners {
  std::vector<Tensor> tensors;
  std::deque<std::vector<std::byte>> bytes;

  // Bytes of a file are read when they are asked for.
  Result<Bytes> copied(Bytes view, const Model& model) {
    std::vector<std::byte>& copy = bytes.emplace_back(view.size());
    AGLOW_OK((SharedBytes{.bytes = view, .owner = model.owner, .file = model.file}.copy(view, copy.data())));
    return Bytes(copy);
  }
};

Status settle(TensorProto& tensor, const Model& model, Owners& owners) {
  if (tensor.dataType == kStringType) {
    for (DataChunk& chunk : tensor.data) {
      AGLOW_TRY(chunk.bytes, owners.copied(chunk.bytes, model));
    }
    return {};
  }
  if (tensor.data.empty() && !tensor.isExternal) {
    AGLOW_TRY(tensor.raw, owners.copied(tensor.raw, model));
    return {};
  }
  AGLOW_TRY(const Tensor values, toTensor(tensor, model));
  if (elemInfo(values.type().kind()).bits < 8)
    return Error{.code = Code::UnsupportedFeature,
                 .message = "tensor " + aglow::quoted(tensor.name) +
                            " has elements of less than a byte, which are not written again"};
  tensor.raw = {values.data(), static_cast<size_t>(values.bytes())};
  tensor.data.clear();
  tensor.isExternal = false;
  tensor.externalData.clear();
  owners.tensors.push_back(values);
  return {};
}

Status settle(Graph& graph, const Model& model, Owners& owners);

// Attributes share what they point to with the model they came from, which stays as it is.
Status settle(std::vector<Node>& nodes, const Model& model, Owners& owners) {
  for (Node& node : nodes)
    for (Attribute& attribute : node.attributes) {
      if (attribute.t) {
        attribute.t = std::make_shared<TensorProto>(*attribute.t);
        AGLOW_OK(settle(*attribute.t, model, owners));
      }
      for (TensorProto& tensor : attribute.tensors) AGLOW_OK(settle(tensor, model, owners));
      if (attribute.g) {
        attribute.g = std::make_shared<Graph>(*attribute.g);
        AGLOW_OK(settle(*attribute.g, model, owners));
      }
      for (Graph& graph : attribute.graphs) AGLOW_OK(settle(graph, model, owners));
    }
  return {};
}

Status settle(Graph& graph, const Model& model, Owners& owners) {
  if (!graph.sparseInitializers.empty())
    return Error{.code = Code::UnsupportedFeature, .message = "sparse initializers are not written again"};
  for (TensorProto& tensor : graph.initializers) AGLOW_OK(settle(tensor, model, owners));
  return settle(graph.nodes, model, owners);
}

}  // namespace

Status settleTensors(Model& model) {
  auto owners = std::make_shared<Owners>();
  AGLOW_OK(settle(model.graph, model, *owners));
  for (Function& function : model.functions) AGLOW_OK(settle(function.nodes, model, *owners));
  model.owner = owners;
  model.file = nullptr;
  return {};
}

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
