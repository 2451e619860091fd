#include "import/onnx/value_file.h"

#include <fmt/format.h>

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

TypeProto valueType(int32_t elemType, bool sequence) {
  TypeProto type;
  type.kind = sequence ? TypeProto::Kind::Sequence : TypeProto::Kind::Tensor;
  if (sequence)
    type.elem = std::make_shared<TypeProto>(valueType(elemType, false));
  else
    type.elemType = elemType;
  return type;
}

Result<ElemKind> elementKindOf(const TypeProto& type) {
  const TypeProto& tensor = tensorOf(type);
  const std::optional<ElemKind> kind =
      tensor.kind == TypeProto::Kind::Tensor ? elemKindByOnnx(tensor.elemType) : std::nullopt;
  if (kind) return *kind;
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
  Model owner;  // external data is no part of test data
  owner.owner = bytes.owner;
  for (const TensorProto& tensor : proto->tensors) {
    auto converted = toValue(tensor, owner);
    if (!converted.ok()) return std::move(converted).error().at(file);
    result.value.append(*converted);
  }
  return result;
}

}  // namespace aglow::onnx
