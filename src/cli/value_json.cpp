#include "cli/value_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "import/onnx/host_values.h"
#include "import/onnx/tensor_data.h"
#include "import/onnx/value_file.h"
#include "support/file.h"
#include "support/quote.h"

namespace aglow::cli {

namespace {

using nlohmann::json;
using onnx::TypeProto;

constexpr std::string_view kNan = "NaN", kInfinity = "Infinity", kMinusInfinity = "-Infinity";

const TypeProto& insideOptional(const TypeProto& type) {
  return type.kind == TypeProto::Kind::Optional ? *type.elem : type;
}

// ---------------------------------------------------------------- to JSON

Result<std::string> wordText(const std::string& word) {
  try {
    return json(word).dump();
  } catch (const json::exception&) {
    return Error{.code = Code::UnsupportedFeature,
                 .message = fmt::format("{} is not UTF-8, and JSON holds nothing else", aglow::quoted(word))};
  }
}

template <class T>
std::string realText(T value) {
  if (std::isfinite(value)) return fmt::format("{}", value);
  return fmt::format("\"{}\"", std::isnan(value) ? kNan : value > 0 ? kInfinity : kMinusInfinity);
}

Result<std::vector<std::string>> elementTexts(const MapColumn& values) {
  std::vector<std::string> texts;
  if (const auto* strings = std::get_if<StringTensor>(&values)) {
    for (const std::string& word : strings->strings()) {
      AGLOW_TRY(std::string text, wordText(word));
      texts.push_back(std::move(text));
    }
    return texts;
  }
  const auto& numbers = std::get<Tensor>(values);
  const ElemKind kind = numbers.type().kind();
  if (!isFloat(kind))
    for (const int64_t value : numbers.toInts()) texts.push_back(fmt::format("{}", value));
  else
    // As many digits as tell the number from others of its kind, as far as C++ has that kind.
    for (const double value : numbers.doubles())
      texts.push_back(kind == ElemKind::Float64 ? realText(value) : realText(static_cast<float>(value)));
  return texts;
}

Result<std::string> mapText(const MapValue& map) {
  AGLOW_TRY(const std::vector<std::string> values, elementTexts(map.values()));
  std::string out;
  for (int64_t i = 0; i < map.size(); ++i) {
    AGLOW_TRY(const std::string key, wordText(keyText(map.keys(), i)));
    out += (i > 0 ? ", " : "") + key + ": " + values[static_cast<size_t>(i)];
  }
  return "{" + out + "}";
}

// ---------------------------------------------------------------- from JSON

Error misfit(std::string message) { return {.code = Code::BadNpy, .message = std::move(message)}; }

Result<double> realOf(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == kNan) return NAN;
  if (value == kInfinity) return INFINITY;
  if (value == kMinusInfinity) return -INFINITY;
  return misfit(fmt::format("expected a number, got {}", value.type_name()));
}

Result<MapColumn> columnOf(const std::vector<json>& values, const TypeProto& type) {
  const Shape shape{std::ssize(values)};
  if (type.elemType == onnx::kStringType) {
    std::vector<std::string> words;
    for (const json& value : values) {
      if (!value.is_string()) return misfit(fmt::format("expected a string, got {}", value.type_name()));
      words.push_back(value.get<std::string>());
    }
    return MapColumn(StringTensor(shape, std::move(words)));
  }
  AGLOW_TRY(const ElemKind kind, onnx::elementKindOf(type));
  if (isFloat(kind)) {
    std::vector<double> numbers;
    for (const json& value : values) {
      AGLOW_TRY(const double number, realOf(value));
      numbers.push_back(number);
    }
    return MapColumn(Tensor::fromDoubles(Type(kind, shape), numbers));
  }
  std::vector<int64_t> numbers;
  for (const json& value : values) {
    if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX))
      return misfit(fmt::format("expected an integer of 64 bits, got {}", value.dump()));
    numbers.push_back(value.get<int64_t>());
  }
  return MapColumn(Tensor::fromInts(Type(kind, shape), numbers));
}

Result<MapValue> mapOf(const json& object, const TypeProto& type) {
  if (!object.is_object()) return misfit(fmt::format("expected an object, got {}", object.type_name()));
  std::vector<std::string> words;
  std::vector<int64_t> numbers;
  std::vector<json> values;
  const bool ofStrings = type.elemType == onnx::kStringType;
  for (const auto& [key, value] : object.items()) {
    values.push_back(value);
    words.push_back(key);
    if (ofStrings) continue;
    const auto [end, fault] = std::from_chars(key.data(), key.data() + key.size(), numbers.emplace_back());
    if (fault != std::errc() || end != key.data() + key.size())
      return misfit(fmt::format("expected keys that are integers, got {}", aglow::quoted(key)));
  }
  AGLOW_TRY(MapColumn column, columnOf(values, *type.elem));
  return MapValue(ofStrings ? MapKeys(std::move(words)) : MapKeys(std::move(numbers)), std::move(column));
}

Result<ModelValue> valueOf(const json& parsed, const TypeProto& type) {
  if (type.kind != TypeProto::Kind::Sequence) {
    AGLOW_TRY(MapValue map, mapOf(parsed, type));
    return ModelValue::of(std::move(map));
  }
  if (!parsed.is_array()) return misfit(fmt::format("expected a list of objects, got {}", parsed.type_name()));
  std::vector<MapValue> maps;
  for (const json& item : parsed) {
    auto map = mapOf(item, *type.elem);
    if (!map.ok()) return std::move(map).error().at(fmt::format("item {}", maps.size()));
    maps.push_back(*std::move(map));
  }
  return ModelValue::mapSequence(std::move(maps));
}

}  // namespace

Result<std::string> mapsText(const ModelValue& value) {
  if (!value.isSequence) return mapText(value.maps.front());
  std::string out;
  for (const MapValue& map : value.maps) {
    AGLOW_TRY(const std::string text, mapText(map));
    out += (out.empty() ? "\n" : ",\n") + text;
  }
  return "[" + out + (out.empty() ? "]" : "\n]");
}

Result<ModelValue> readMaps(const std::string& file, const TypeProto& type) {
  if (file == "@none") return ModelValue::absent();
  if (file.ends_with(".npy"))
    return Error{
        .code = Code::BadBinding, .message = "expected a map, which a .json file holds, got an array", .where = file};
  AGLOW_TRY(const SharedBytes mapped, readFile(file));
  const std::string_view text(reinterpret_cast<const char*>(mapped.bytes.data()), mapped.bytes.size());
  const json parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded()) return misfit("expected JSON").at(file);
  auto value = valueOf(parsed, insideOptional(type));
  if (!value.ok()) return std::move(value).error().at(file);
  return value;
}

}  // namespace aglow::cli
