#include "import/onnx/value_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "import/onnx/tensor_data.h"
#include "import/onnx/value_proto.h"
#include "support/file.h"
#include "tensor/npy.h"

namespace aglow::onnx {

namespace {

const TypeProto& behindOptional(const TypeProto& type) {
  return type.kind == TypeProto::Kind::Optional ? *type.elem : type;
}

const TypeProto& tensorOf(const TypeProto& type) {
  const TypeProto& value = behindOptional(type);
  return value.kind == TypeProto::Kind::Sequence ? *value.elem : value;
}

// The elements of some tensors in a row.
Result<MapColumn> columnOf(const std::vector<TensorProto>& protos, const TypeProto& type, const Model& owner) {
  std::vector<std::string> words;
  std::vector<std::byte> bytes;
  const bool ofStrings = type.elemType == kStringType;
  const std::optional<ElemKind> kind = elemKindByOnnx(type.elemType);
  if (!kind && !ofStrings)
    return Error{.code = Code::UnsupportedFeature,
                 .message = fmt::format("maps to {} are not supported", describe(type))};
  for (const TensorProto& proto : protos) {
    AGLOW_TRY(const ModelValue value, toValue(proto, owner));
    if (value.isStrings() != ofStrings || (!ofStrings && value.tensor().type().kind() != *kind))
      return Error{.code = Code::BadFile,
                   .message = fmt::format("a value of the map is {}; expected {}", value.text(), describe(type))};
    if (ofStrings)
      words.insert(words.end(), value.strings.front().strings().begin(), value.strings.front().strings().end());
    else
      bytes.insert(bytes.end(), value.tensor().data(), value.tensor().data() + value.tensor().bytes());
  }
  if (ofStrings) return MapColumn(StringTensor(Shape{std::ssize(words)}, std::move(words)));
  Tensor column(Type(*kind, Shape{std::ssize(bytes) / elemBytes(*kind)}));
  std::copy(bytes.begin(), bytes.end(), column.mutableData());
  return MapColumn(std::move(column));
}

Result<MapValue> mapOf(const MapProto& proto, const TypeProto& type, const Model& owner) {
  AGLOW_TRY(MapColumn values, columnOf(proto.values, *type.elem, owner));
  MapKeys keys = type.elemType == kStringType ? MapKeys(proto.stringKeys) : MapKeys(proto.keys);
  if (lengthOf(values) != sizeOf(keys))
    return Error{.code = Code::BadFile,
                 .message = fmt::format("the map has {} keys and {} values", sizeOf(keys), lengthOf(values))};
  return MapValue(std::move(keys), std::move(values));
}

// One .npy file, added to a value.
Status appendNpy(const std::string& file, const TypeProto& type, ModelValue& value) {
  if (tensorOf(type).kind == TypeProto::Kind::Tensor && tensorOf(type).elemType == kStringType) {
    AGLOW_TRY(StringTensor strings, readNpyStrings(file));
    value.strings.push_back(std::move(strings));
    return {};
  }
  AGLOW_TRY(const ElemKind kind, elementKindOf(type));
  AGLOW_TRY(Tensor tensor, readNpy(file, kind));
  value.tensors.push_back(std::move(tensor));
  return {};
}

}  // namespace

bool isSequence(const TypeProto& type) { return behindOptional(type).kind == TypeProto::Kind::Sequence; }

TypeProto valueType(int32_t elemType, bool sequence, int32_t keyType) {
  TypeProto type;
  if (sequence) {
    type.kind = TypeProto::Kind::Sequence;
    type.elem = std::make_shared<TypeProto>(valueType(elemType, false, keyType));
  } else if (keyType != 0) {
    type.kind = TypeProto::Kind::Map;
    type.elemType = keyType;
    type.elem = std::make_shared<TypeProto>(valueType(elemType, false));
  } else {
    type.kind = TypeProto::Kind::Tensor;
    type.elemType = elemType;
  }
  return type;
}

Result<ElemKind> elementKindOf(const TypeProto& type) {
  const TypeProto& tensor = tensorOf(type);
  if (tensor.kind == TypeProto::Kind::Tensor) return elemKindOf(tensor.elemType, Code::BadGraph);
  return Error{.code = Code::UnsupportedFeature,
               .message = fmt::format("values of type {} are not supported", describe(type))};
}

Result<ModelValue> readNpyValue(const std::string& file, const TypeProto& type) {
  if (file == "@none") return ModelValue::absent();
  if (type.open) {
    // The file's own kind counts.
    AGLOW_TRY(const NpyHeader header, readNpyHeader(file));
    const std::optional<ElemKind> kind = elemKindByNpy(header.descr);
    if (!kind)
      return Error{.code = Code::UnsupportedFeature,
                   .message = fmt::format("elements of numpy's type '{}' are not supported", header.descr),
                   .where = file};
    AGLOW_TRY(Tensor tensor, readNpy(file, *kind));
    return ModelValue::of(std::move(tensor));
  }
  ModelValue value;
  value.isSequence = isSequence(type);
  if (!value.isSequence) {
    AGLOW_OK(appendNpy(file, type, value));
    return value;
  }
  while (true) {
    const std::string item = fmt::format("{}/{}.npy", file, value.items());
    if (!std::filesystem::exists(item)) return value;
    AGLOW_OK(appendNpy(item, type, value));
  }
}

Result<NamedValue> readProtoValue(const std::string& file, const TypeProto& type) {
  AGLOW_TRY(SharedBytes bytes, readFile(file));
  auto proto = parseValue(bytes.bytes, type);
  if (!proto.ok()) return std::move(proto).error().at(file);
  NamedValue result{.name = proto->name,
                    .value = {.none = proto->none, .isSequence = proto->isSequence, .tensors = {}}};
  Model owner;  // external data is not part of test data
  owner.owner = bytes.owner;
  for (const TensorProto& tensor : proto->tensors) {
    auto converted = toValue(tensor, owner);
    if (!converted.ok()) return std::move(converted).error().at(file);
    result.value.append(*converted);
  }
  for (const MapProto& map : proto->maps) {
    auto converted = mapOf(map, tensorOf(type), owner);
    if (!converted.ok()) return std::move(converted).error().at(file);
    result.value.maps.push_back(*std::move(converted));
  }
  return result;
}

}  // namespace aglow::onnx
