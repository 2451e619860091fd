#include "cli/types_json.h"

#include <nlohmann/json.hpp>

#include "import/onnx/host_values.h"

namespace aglow::cli {

namespace {

using Json = nlohmann::ordered_json;
using Kind = onnx::TypeProto::Kind;

Json sizeJson(const onnx::Dim& dim) {
  if (dim.kind == onnx::Dim::Kind::Value) return dim.value;
  return dim.kind == onnx::Dim::Kind::Symbol ? Json(dim.symbol) : Json();
}

const char* kindName(Kind kind) {
  switch (kind) {
    case Kind::Tensor:
      return "tensor";
    case Kind::SparseTensor:
      return "sparse_tensor";
    case Kind::Sequence:
      return "sequence";
    case Kind::Optional:
      return "optional";
    case Kind::Map:
      return "map";
    case Kind::Opaque:
      return "opaque";
    case Kind::None:
      break;
  }
  return "none";
}

}  // namespace

Json typeJson(const onnx::TypeProto& type) {
  Json json = {{"kind", kindName(type.kind)}};
  if (type.kind == Kind::Tensor || type.kind == Kind::SparseTensor) {
    json["elem"] = onnx::describeElem(type.elemType);
    json["shape"] = type.hasShape ? Json::array() : Json();
    for (const onnx::Dim& dim : type.dims) json["shape"].push_back(sizeJson(dim));
  }
  if (type.kind == Kind::Map) json["key"] = onnx::describeElem(type.elemType);
  if (type.elem != nullptr) json["of"] = typeJson(*type.elem);
  json["text"] = onnx::describe(type);
  return json;
}

Json typeJson(const Type& type) {
  return {{"kind", "tensor"},
          {"elem", elemName(type.kind())},
          {"shape", std::vector<int64_t>(type.shape().dims().begin(), type.shape().dims().end())},
          {"text", type.text()}};
}

Json typeJson(const Port& port) {
  if (port.kind == Port::Kind::Tensor) return typeJson(port.type);
  if (port.kind == Port::Kind::None) return {{"kind", "none"}};
  Json json = {{"kind", "sequence"}, {"items", Json::array()}};
  for (const Port& item : port.items) json["items"].push_back(typeJson(item));
  return json;
}

}  // namespace aglow::cli
