// Types of ONNX values in words, in the spelling of Aglow's own types where there is one.
#include <fmt/format.h>

#include "import/onnx/proto.h"
#include "support/quote.h"
#include "tensor/elem_kind.h"

namespace aglow::onnx {

namespace {

std::string describeDim(const Dim& dim) {
  switch (dim.kind) {
    case Dim::Kind::Value:
      return std::to_string(dim.value);
    case Dim::Kind::Symbol: {
      const std::string safe = quoted(dim.symbol);
      return safe.substr(1, safe.size() - 2);
    }
    case Dim::Kind::Unknown:
      break;
  }
  return "?";
}

std::string describeTensor(const TypeProto& type) {
  if (!type.hasShape) return describeElem(type.elemType) + "[...]";
  std::string dims;
  for (const Dim& dim : type.dims) dims += (dims.empty() ? "" : ",") + describeDim(dim);
  return fmt::format("{}[{}]", describeElem(type.elemType), dims);
}

}  // namespace

std::string describeElem(int32_t dataType) {
  if (const auto kind = elemKindByOnnx(dataType)) return std::string(elemName(*kind));
  switch (dataType) {
    case 0:
      return "?";
    case 8:
      return "string";
    case 14:
      return "complex64";
    case 15:
      return "complex128";
    case 27:
      return "f6e2m3";
    case 28:
      return "f6e3m2";
    default:
      return fmt::format("type {}", dataType);
  }
}

std::string describe(const TypeProto& type) {
  switch (type.kind) {
    case TypeProto::Kind::Tensor:
      return describeTensor(type);
    case TypeProto::Kind::SparseTensor:
      return "sparse " + describeTensor(type);
    case TypeProto::Kind::Sequence:
      return fmt::format("sequence({})", describe(*type.elem));
    case TypeProto::Kind::Optional:
      return fmt::format("optional({})", describe(*type.elem));
    case TypeProto::Kind::Map:
      return fmt::format("map({}, {})", describeElem(type.elemType), describe(*type.elem));
    case TypeProto::Kind::Opaque:
      return "opaque";
    case TypeProto::Kind::None:
      break;
  }
  return "no type";
}

}  // namespace aglow::onnx
