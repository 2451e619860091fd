// Values lie in raw_data (little endian, narrow kinds several to a byte, low bits first), in a repeated field that
// depends on the kind, or in another file. Those of a file are read straight into the tensor; bytes that callers hold
// in memory stay where they are. Every write is bounded by the tensor, not by an earlier count of the values.
#include "import/onnx/tensor_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "import/onnx/external_data.h"
#include "import/onnx/tensor_check.h"
#include "import/wire/wire.h"
#include "support/file.h"
#include "support/quote.h"
#include "support/sizes.h"

namespace aglow::onnx {

static_assert(std::endian::native == std::endian::little, "raw_data is used in place");

namespace {

constexpr std::string_view kFieldNames[] = {"float_data",  "int32_data",  "int64_data",
                                            "double_data", "uint64_data", "string_data"};

Error badTensor(std::string message) { return {Code::BadTensor, std::move(message)}; }

DataField fieldOf(ElemKind kind) {
  switch (kind) {
    case ElemKind::Float32:
      return DataField::Float;
    case ElemKind::Float64:
      return DataField::Double;
    case ElemKind::Int64:
      return DataField::Int64;
    case ElemKind::UInt32:
    case ElemKind::UInt64:
      return DataField::UInt64;
    default:
      return DataField::Int32;
  }
}

// How many elements share one byte of the file.
int perByte(ElemKind kind) {
  const ElemInfo& info = elemInfo(kind);
  return info.cls == ElemClass::Bool || info.bits >= 8 ? 1 : 8 / info.bits;
}

int64_t storedBytes(const Type& type) {
  return perByte(type.kind()) == 1 ? type.bytes() : ceilDiv(type.elements(), perByte(type.kind()));
}

// Narrow elements, one a byte; signed ones get their sign.
Tensor unpacked(Type type, Bytes packed) {
  Tensor out(std::move(type));
  const ElemInfo& info = elemInfo(out.type().kind());
  const int count = perByte(info.kind);
  const unsigned mask = (1U << info.bits) - 1;
  const unsigned sign = info.cls == ElemClass::Signed ? 1U << (info.bits - 1) : 0;
  std::byte* to = out.mutableData();
  for (int64_t i = 0, n = out.type().elements(); i < n; ++i) {
    const auto byte = static_cast<unsigned>(packed[static_cast<size_t>(i / count)]);
    const unsigned value = (byte >> (i % count * info.bits)) & mask;
    to[i] = static_cast<std::byte>((value ^ sign) - sign);
  }
  return out;
}

// read(to) gives exactly the bytes that the type needs.
template <class Read>
Result<Tensor> fromRead(Type type, const Read& read) {
  if (perByte(type.kind()) > 1) {
    std::vector<std::byte> packed(static_cast<size_t>(storedBytes(type)));
    AGLOW_OK(read(std::span(packed)));
    return unpacked(std::move(type), packed);
  }
  Tensor out(std::move(type));
  const std::span<std::byte> bytes(out.mutableData(), static_cast<size_t>(out.bytes()));
  AGLOW_OK(read(bytes));
  if (out.type().kind() == ElemKind::Bool)
    for (std::byte& b : bytes) b = std::byte{b != std::byte{0} ? uint8_t{1} : uint8_t{0}};
  return out;
}

// Of bytes that are as many as the type needs. Those in memory are not copied where they can be used as they are;
// Tensor itself copies those that are not aligned.
Result<Tensor> fromStored(Type type, Bytes raw, const Model& model) {
  const auto isBit = [](std::byte b) { return b <= std::byte{1}; };
  const bool plain = !model.file && perByte(type.kind()) == 1 &&
                     (type.kind() != ElemKind::Bool || std::all_of(raw.begin(), raw.end(), isBit));
  if (plain) return Tensor(std::move(type), raw.data(), model.owner);
  const SharedBytes stored{.bytes = raw, .owner = model.owner, .file = model.file};
  return fromRead(std::move(type), [&](std::span<std::byte> to) { return stored.copy(raw, to.data()); });
}

// A part of the model's bytes as it is in memory, or in `room`.
Result<Bytes> inMemory(Bytes part, const Model& model, std::vector<std::byte>& room) {
  if (!model.file) return part;
  room.resize(part.size());
  AGLOW_OK(model.file->copy(part, room.data()));
  return Bytes(room);
}

Status checkCount(int64_t expected, int64_t got, std::string_view unit, const Type& type) {
  if (expected == got) return {};
  return badTensor(fmt::format("expected {} {} for {}, got {}", expected, unit, type.text(), got));
}

// One value of a repeated field, of the width that the tensor stores; false when it does not fit.
class Unit {
public:
  Unit(DataField field, ElemKind kind)
      : field_(field),
        isBool_(kind == ElemKind::Bool),
        isSigned_(isSigned(kind) && perByte(kind) == 1),
        bytes_(perByte(kind) == 1 ? static_cast<size_t>(elemBytes(kind)) : 1) {}

  size_t bytes() const { return bytes_; }

  bool write(uint64_t varint, std::byte* to) const {
    // int32 values are cut to their width, whatever the writer put above it.
    if (field_ == DataField::Int32) varint = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(varint)));
    if (isBool_) varint = varint != 0 ? 1 : 0;
    if (!fits(varint)) return false;
    std::memcpy(to, &varint, bytes_);
    return true;
  }

private:
  bool fits(uint64_t value) const {
    if (bytes_ == 8) return true;
    const int bits = static_cast<int>(bytes_) * 8;
    return (isSigned_ ? value + (uint64_t{1} << (bits - 1)) : value) >> bits == 0;
  }

  DataField field_;
  bool isBool_;
  bool isSigned_;
  size_t bytes_;
};

Status decodeVarints(const TensorProto& t, const Model& model, const Unit& unit, std::span<std::byte> out) {
  size_t done = 0;
  std::vector<std::byte> room;
  for (const DataChunk& chunk : t.data) {
    AGLOW_TRY(Bytes rest, inMemory(chunk.bytes, model, room));
    for (; !rest.empty(); done += unit.bytes()) {
      const auto value = wire::takeVarint(rest);
      if (!value || done == out.size()) return badTensor("a value is malformed");
      if (!unit.write(*value, out.data() + done))
        return badTensor(fmt::format("value {} at position {} does not fit its type", static_cast<int64_t>(*value),
                                     done / unit.bytes()));
    }
  }
  return {};
}

Result<Tensor> fromVarints(const TensorProto& t, Type type, const Model& model) {
  int64_t got = 0;
  std::vector<std::byte> room;
  for (const DataChunk& chunk : t.data) {
    AGLOW_TRY(const Bytes varints, inMemory(chunk.bytes, model, room));
    got += wire::countVarints(varints);
  }
  const Unit unit(fieldOf(type.kind()), type.kind());
  const int64_t bytes = storedBytes(type);
  AGLOW_OK(checkCount(bytes / static_cast<int64_t>(unit.bytes()), got, "values", type));
  if (perByte(type.kind()) > 1) {
    std::vector<std::byte> packed(static_cast<size_t>(bytes));
    AGLOW_OK(decodeVarints(t, model, unit, packed));
    return unpacked(std::move(type), packed);
  }
  Tensor out(std::move(type));
  AGLOW_OK(decodeVarints(t, model, unit, {out.mutableData(), static_cast<size_t>(bytes)}));
  return out;
}

Result<Tensor> fromFixed(const TensorProto& t, Type type, const Model& model) {
  int64_t got = 0;
  for (const DataChunk& chunk : t.data) got += static_cast<int64_t>(chunk.bytes.size());
  const int width = elemBytes(type.kind());
  AGLOW_OK(checkCount(type.elements(), got / width, "values", type));
  if (t.data.size() == 1) return fromStored(std::move(type), t.data.front().bytes, model);
  Tensor out(std::move(type));
  std::byte* to = out.mutableData();
  std::vector<std::byte> room;
  for (const DataChunk& chunk : t.data) {
    AGLOW_TRY(const Bytes values, inMemory(chunk.bytes, model, room));
    to = std::copy(values.begin(), values.end(), to);
  }
  return out;
}

Result<Tensor> fromTyped(const TensorProto& t, Type type, const Model& model) {
  const DataField field = fieldOf(type.kind());
  for (const DataChunk& chunk : t.data)
    if (chunk.field != field)
      return badTensor(fmt::format("expected {} values in {}, got {}", elemName(type.kind()),
                                   kFieldNames[static_cast<size_t>(field)],
                                   kFieldNames[static_cast<size_t>(chunk.field)]));
  if (field == DataField::Float || field == DataField::Double) return fromFixed(t, std::move(type), model);
  return fromVarints(t, std::move(type), model);
}

// What is known of a tensor before its bytes are read: there are as many as the type needs, except of typed values,
// which have to be decoded to be counted.
struct Located {
  Type type;
  std::optional<ExternalFiles::Part> external = {};
};

Result<Located> locate(const TensorProto& t, const Model& model) {
  AGLOW_TRY(const ElemKind kind, elemKindOf(t.dataType, Code::BadTensor));
  if (t.isSegment) return Error{Code::UnsupportedFeature, "tensors stored in segments are not supported"};
  AGLOW_TRY(Shape shape, Shape::create(t.dims));
  Type type(kind, std::move(shape));
  if (int{t.isExternal} + int{!t.raw.empty()} + int{!t.data.empty()} > 1)
    return badTensor("the values are stored in more than one place");

  if (t.isExternal) {
    if (!model.external)
      return Error{Code::BadExternalData,
                   "the model was read from memory, so it has no folder to find external data in"};
    AGLOW_TRY(ExternalFiles::Part part, model.external->find(t.externalData, storedBytes(type)));
    return Located{std::move(type), std::move(part)};
  }
  if (t.data.empty()) AGLOW_OK(checkCount(storedBytes(type), static_cast<int64_t>(t.raw.size()), "bytes", type));
  return Located{std::move(type)};
}

Result<Tensor> convert(const TensorProto& t, const Model& model) {
  AGLOW_TRY(Located located, locate(t, model));
  if (located.external)
    return fromRead(std::move(located.type), [&](std::span<std::byte> to) { return located.external->read(to); });
  if (!t.data.empty()) return fromTyped(t, std::move(located.type), model);
  return fromStored(std::move(located.type), t.raw, model);
}

// Positions in the dense tensor from indices in either of ONNX's two forms; they must ascend.
Result<std::vector<int64_t>> positions(const Tensor& indices, int64_t count, const Shape& shape) {
  const Shape& form = indices.type().shape();
  const bool linear = form == Shape{count};
  if (indices.type().kind() != ElemKind::Int64 || (!linear && form != Shape{count, shape.rank()}))
    return badTensor(fmt::format("indices {} do not fit {} values of a tensor of shape {}", indices.type().text(),
                                 count, shape.text()));
  const std::vector<int64_t> numbers = indices.toInts();
  const std::vector<int64_t> strides = linear ? std::vector<int64_t>{1} : shape.strides();
  const std::vector<int64_t> extents = linear ? std::vector<int64_t>{shape.elements()} : shape.dims();
  std::vector<int64_t> out;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    int64_t position = 0;
    for (size_t axis = 0; axis < strides.size(); ++axis) {
      const int64_t index = numbers[i * strides.size() + axis];
      if (index < 0 || index >= extents[axis])
        return badTensor(fmt::format("index {} lies outside of an extent of {}", index, extents[axis]));
      position += index * strides[axis];
    }
    if (!out.empty() && position <= out.back()) return badTensor("the indices do not ascend");
    out.push_back(position);
  }
  return out;
}

Result<Tensor> convert(const SparseTensorProto& s, const Model& model) {
  AGLOW_TRY(const Tensor values, convert(s.values, model));
  AGLOW_TRY(const Tensor indices, convert(s.indices, model));
  AGLOW_TRY(Shape shape, Shape::create(s.dims));
  const Type& valueType = values.type();
  if (valueType.rank() != 1) return badTensor("the values of a sparse tensor must be a vector");
  AGLOW_TRY(const auto places, positions(indices, valueType.elements(), shape));
  Type type(valueType.kind(), std::move(shape));
  if (type.bytes() > kMaxDenseBytes)
    return Error{Code::TooLarge,
                 fmt::format("the sparse tensor would fill {} bytes, {} are allowed", type.bytes(), kMaxDenseBytes)};
  Tensor out(std::move(type));
  const int width = elemBytes(valueType.kind());
  for (size_t i = 0; i < places.size(); ++i)
    std::memcpy(out.mutableData() + places[i] * width, values.data() + static_cast<int64_t>(i) * width,
                static_cast<size_t>(width));
  return out;
}

Result<StringTensor> convertStrings(const TensorProto& t) {
  if (t.isSegment) return Error{Code::UnsupportedFeature, "tensors stored in segments are not supported"};
  if (t.isExternal || !t.raw.empty()) return badTensor("strings must be stored in string_data");
  AGLOW_TRY(Shape shape, Shape::create(t.dims));
  std::vector<std::string> strings;
  for (const DataChunk& chunk : t.data) {
    if (chunk.field != DataField::String)
      return badTensor(fmt::format("expected strings in {}, got {}",
                                   kFieldNames[static_cast<size_t>(DataField::String)],
                                   kFieldNames[static_cast<size_t>(chunk.field)]));
    strings.emplace_back(reinterpret_cast<const char*>(chunk.bytes.data()), chunk.bytes.size());
  }
  if (std::ssize(strings) != shape.elements())
    return badTensor(
        fmt::format("expected {} strings for string{}, got {}", shape.elements(), shape.text(), strings.size()));
  return StringTensor(std::move(shape), std::move(strings));
}

template <class T>
Result<T> named(const std::string& name, Result<T> tensor) {
  if (tensor.ok()) return tensor;
  return std::move(tensor).error().at("tensor " + quoted(name));
}

}  // namespace

Result<ElemKind> elemKindOf(int64_t dataType, Code unknown) {
  constexpr int64_t kLastKnown = 28;
  if (dataType <= 0 || dataType > kLastKnown) return Error{unknown, fmt::format("unknown element type {}", dataType)};
  const auto number = static_cast<int32_t>(dataType);
  if (const auto kind = elemKindByOnnx(number)) return *kind;
  return Error{Code::UnsupportedFeature, fmt::format("elements of type {} are not supported", describeElem(number))};
}

Result<Tensor> toTensor(const TensorProto& proto, const Model& model) {
  return named(proto.name, convert(proto, model));
}

Status checkTensor(const TensorProto& proto, const Model& model) {
  // Those are small, or rare.
  if (proto.dataType == kStringType || !proto.data.empty()) {
    AGLOW_OK(toValue(proto, model));
    return {};
  }
  AGLOW_OK(named(proto.name, locate(proto, model)));
  return {};
}

Result<Tensor> toTensor(const SparseTensorProto& proto, const Model& model) {
  return named(proto.values.name, convert(proto, model));
}

Result<StringTensor> toStrings(const TensorProto& proto) { return named(proto.name, convertStrings(proto)); }

Result<ModelValue> toValue(const TensorProto& proto, const Model& model) {
  if (proto.dataType == kStringType) {
    AGLOW_TRY(StringTensor strings, toStrings(proto));
    return ModelValue::of(std::move(strings));
  }
  AGLOW_TRY(Tensor tensor, toTensor(proto, model));
  return ModelValue::of(std::move(tensor));
}

}  // namespace aglow::onnx
