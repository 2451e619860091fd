#include "api/tensors.h"

#include <fmt/format.h>

#include <cstring>
#include <span>

#include "import/onnx/tensor_data.h"
#include "tensor/slices.h"

namespace aglow {

namespace {

Error misfit(const std::string& input, std::string message) {
  return {.code = Code::BadBinding, .message = std::move(message), .where = fmt::format("input '{}'", input)};
}

// A tensor over the caller's bytes, or a copy of the caller's strings.
Result<ModelValue> valueOf(const aglow_tensor& given) {
  const std::string name = given.name != nullptr ? given.name : "";
  // C lets any number pass for one of the enumeration.
  int32_t number = 0;
  std::memcpy(&number, &given.kind, sizeof number);
  const std::optional<ElemKind> kind = elemKindByOnnx(number);
  if (!kind && number != AGLOW_STRING) return misfit(name, fmt::format("there is no kind {}", number));
  if (given.name == nullptr || (given.dims == nullptr && given.rank > 0))
    return misfit(name, "its name or shape is null");
  auto shape = Shape::create(std::vector<int64_t>(given.dims, given.dims + given.rank));
  if (!shape.ok()) return Error(shape.error()).at(fmt::format("input '{}'", name));
  if (given.data == nullptr && shape->elements() > 0) return misfit(name, "its address is null");
  if (kind)
    return ModelValue::of(Tensor(Type(*kind, *std::move(shape)), static_cast<const std::byte*>(given.data), nullptr));
  std::vector<std::string> strings;
  for (const char* word :
       std::span(static_cast<const char* const*>(given.data), static_cast<size_t>(shape->elements()))) {
    if (word == nullptr) return misfit(name, fmt::format("string {} is null", strings.size()));
    strings.emplace_back(word);
  }
  return ModelValue::of(StringTensor(*std::move(shape), std::move(strings)));
}

Result<MapValue> mapOf(const std::string& name, const ModelValue& keys, const ModelValue& values) {
  const auto shapeOf = [](const ModelValue& value) {
    return value.isStrings() ? value.strings.front().shape() : value.tensor().type().shape();
  };
  const bool whole = keys.isTensor() && keys.tensor().type().kind() == ElemKind::Int64;
  if ((!whole && !keys.isStrings()) || shapeOf(keys).rank() != 1 || shapeOf(keys) != shapeOf(values))
    return misfit(name, fmt::format("expected keys of type i64[n] or string[n] and as many values, got {} and {}",
                                    keys.text(), values.text()));
  return MapValue(whole ? MapKeys(keys.tensor().toInts()) : MapKeys(keys.strings.front().strings()),
                  values.isStrings() ? MapColumn(values.strings.front()) : MapColumn(values.tensor()));
}

Tensor copyOf(const Tensor& tensor) {
  Tensor copy(tensor.type());
  std::memcpy(copy.mutableData(), tensor.data(), static_cast<size_t>(tensor.bytes()));
  return copy;
}

MapColumn columnOf(const MapKeys& keys) {
  if (const auto* words = std::get_if<std::vector<std::string>>(&keys))
    return StringTensor(Shape{sizeOf(keys)}, *words);
  return Tensor::ints(std::get<std::vector<int64_t>>(keys));
}

// The keys of a map and its values; of a sequence the keys that all maps have, and a row of values for each.
Status addMaps(const std::string& name, const ModelValue& value, std::deque<NamedTensor>& results) {
  const MapValue& first = value.maps.front();
  for (const MapValue& map : value.maps)
    if (map.keys() != first.keys() || map.values().index() != first.values().index())
      return Error{.code = Code::UnsupportedFeature,
                   .message = fmt::format(
                       "the maps of output '{}' have different keys, which this interface does not give", name)};
  results.emplace_back(name + ".keys", columnOf(first.keys()));
  std::vector<int64_t> dims = {first.size()};
  if (value.isSequence) dims.insert(dims.begin(), std::ssize(value.maps));
  if (first.hasStrings()) {
    std::vector<std::string> words;
    for (const MapValue& map : value.maps)
      words.insert(words.end(), map.strings().strings().begin(), map.strings().strings().end());
    results.emplace_back(name + ".values", StringTensor(Shape(dims), std::move(words)));
    return {};
  }
  std::vector<Tensor> rows;
  for (const MapValue& map : value.maps) rows.push_back(map.numbers());
  const Tensor table = stacked(rows, 0);
  results.emplace_back(name + ".values", table.retyped(table.type().withShape(Shape(dims))));
  return {};
}

}  // namespace

NamedTensor::NamedTensor(std::string name, MapColumn elements)
    : name_(std::move(name)), elements_(std::move(elements)) {
  if (const auto* strings = std::get_if<StringTensor>(&elements_)) {
    for (const std::string& word : strings->strings()) words_.push_back(word.c_str());
    describe(AGLOW_STRING, strings->shape(), words_.data());
    return;
  }
  auto& tensor = std::get<Tensor>(elements_);
  // An output may be an input as it came, whose bytes are the caller's.
  if (!tensor.ownsBytes()) tensor = copyOf(tensor);
  describe(static_cast<aglow_kind>(elemInfo(storageKind(tensor.type().kind())).onnx), tensor.type().shape(),
           tensor.data());
}

void NamedTensor::describe(aglow_kind kind, const Shape& shape, const void* data) {
  described_ = {.name = name_.c_str(),
                .kind = kind,
                .rank = static_cast<size_t>(shape.rank()),
                .dims = shape.dims().data(),
                .data = data};
}

std::unique_ptr<NamedTensor> labelsOf(std::string name, const MapKeys& labels) {
  return std::make_unique<NamedTensor>(std::move(name), columnOf(labels));
}

Result<std::map<std::string, ModelValue>> inputsOf(const onnx::Graph& graph, const aglow_tensor* given, size_t count) {
  std::map<std::string, ModelValue> values;
  for (const aglow_tensor& tensor : std::span(given, count)) {
    AGLOW_TRY(values[tensor.name != nullptr ? tensor.name : ""], valueOf(tensor));
  }
  for (const onnx::ValueInfo& info : graph.inputs) {
    const auto keys = values.find(info.name + ".keys"), column = values.find(info.name + ".values");
    if (info.type.kind != onnx::TypeProto::Kind::Map || keys == values.end() || column == values.end()) continue;
    AGLOW_TRY(MapValue map, mapOf(info.name, keys->second, column->second));
    values.erase(keys);
    values.erase(column);
    values[info.name] = ModelValue::of(std::move(map));
  }
  return values;
}

Status addResults(const onnx::ValueInfo& declared, const ModelValue& value, std::deque<NamedTensor>& results) {
  if (!value.maps.empty()) return addMaps(declared.name, value, results);
  const onnx::TypeProto& type = declared.type;
  if (value.isSequence && value.items() == 0 && type.kind == onnx::TypeProto::Kind::Sequence &&
      type.elem->kind == onnx::TypeProto::Kind::Map) {
    // No maps have no keys.
    const bool named = type.elem->elemType == onnx::kStringType;
    results.emplace_back(declared.name + ".keys",
                         columnOf(named ? MapKeys(std::vector<std::string>()) : MapKeys(std::vector<int64_t>())));
    const ElemKind kind = elemKindByOnnx(type.elem->elem->elemType).value_or(ElemKind::Float32);
    results.emplace_back(declared.name + ".values", Tensor(Type(kind, Shape{0, 0})));
  }
  const auto nameOf = [&](size_t i) {
    return value.isSequence ? fmt::format("{}[{}]", declared.name, i) : declared.name;
  };
  for (size_t i = 0; i < value.tensors.size(); ++i) results.emplace_back(nameOf(i), value.tensors[i]);
  for (size_t i = 0; i < value.strings.size(); ++i) results.emplace_back(nameOf(i), value.strings[i]);
  return {};
}

}  // namespace aglow
