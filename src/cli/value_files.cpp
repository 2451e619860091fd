#include "cli/value_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/value_json.h"
#include "import/onnx/host_values.h"
#include "import/onnx/tensor_data.h"
#include "import/onnx/value_file.h"
#include "media/wav.h"
#include "support/file.h"
#include "tensor/npz.h"

namespace aglow::cli {

namespace {

using Json = nlohmann::json;

Error misfit(std::string message) { return {.code = Code::BadNpy, .message = std::move(message)}; }

const onnx::TypeProto& tensorType(const onnx::TypeProto& type) {
  return type.kind == onnx::TypeProto::Kind::Optional && type.elem != nullptr ? *type.elem : type;
}

std::vector<int64_t> declaredDims(const onnx::TypeProto& type) {
  std::vector<int64_t> dims;
  for (const onnx::Dim& dim : tensorType(type).dims)
    dims.push_back(dim.kind == onnx::Dim::Kind::Value ? dim.value : -1);
  return dims;
}

Result<ModelValue> readImage(const std::string& file, const onnx::TypeProto& type, const media::Preprocess& how) {
  AGLOW_TRY(const ElemKind kind, onnx::elementKindOf(type));
  AGLOW_TRY(const SharedBytes bytes, readFile(file));
  // What takes the bytes of a file decodes them itself.
  if (kind == ElemKind::UInt8 && tensorType(type).dims.size() == 1) {
    Tensor whole(Type(kind, Shape{std::ssize(bytes.bytes)}));
    std::copy(bytes.bytes.begin(), bytes.bytes.end(), whole.mutableData());
    return ModelValue::of(std::move(whole));
  }
  AGLOW_TRY(const media::Image image, media::decodeImage(bytes.bytes));
  AGLOW_TRY(Tensor tensor, media::imageTensor(image, how, {.kind = kind, .dims = declaredDims(type)}));
  return ModelValue::of(std::move(tensor));
}

// One channel along the last axis; what the model wants more is silence, what it wants less is left out.
Result<ModelValue> readSound(const std::string& file, const onnx::TypeProto& type) {
  AGLOW_TRY(const ElemKind kind, onnx::elementKindOf(type));
  AGLOW_TRY(const SharedBytes bytes, readFile(file));
  AGLOW_TRY(const media::Sound sound, media::decodeWav(bytes.bytes));
  std::vector<float> samples = sound.mono();
  std::vector<int64_t> dims = declaredDims(type);
  if (dims.empty()) return Error{.code = Code::BadBinding, .message = "a sound is no scalar"};
  for (size_t i = 0; i + 1 < dims.size(); ++i)
    if (std::exchange(dims[i], 1) > 1)
      return Error{.code = Code::BadBinding, .message = "one sound is given for several"};
  if (dims.back() >= 0 && dims.back() != std::ssize(samples)) {
    say(fmt::format("note: {}: {} samples at {} Hz become {}\n", file, samples.size(), sound.rate, dims.back()));
    samples.resize(static_cast<size_t>(dims.back()));
  }
  dims.back() = std::ssize(samples);
  AGLOW_TRY(const Shape shape, Shape::create(dims));
  if (isFloat(kind)) return ModelValue::of(Tensor::fromDoubles(Type(kind, shape), {samples.begin(), samples.end()}));
  constexpr double kLoudest = 32767;
  std::vector<int64_t> whole;
  for (const float sample : samples) whole.push_back(std::lround(std::clamp<double>(sample, -1, 1) * kLoudest));
  return ModelValue::of(Tensor::fromInts(Type(kind, shape), whole));
}

// The sizes of nested lists, the first of each deciding, and the numbers in them.
Status flatten(const Json& value, size_t depth, std::vector<int64_t>& dims, std::vector<Json>& numbers) {
  constexpr size_t kDeepest = 64;
  if (!value.is_array()) {
    if (depth != dims.size()) return misfit("its lists are of several depths");
    numbers.push_back(value);
    return {};
  }
  if (depth >= kDeepest) return misfit("its lists are nested too deep");
  if (numbers.empty() && depth == dims.size()) dims.push_back(std::ssize(value));
  if (depth >= dims.size() || dims[depth] != std::ssize(value)) return misfit("its lists are of several lengths");
  for (const Json& item : value) AGLOW_OK(flatten(item, depth + 1, dims, numbers));
  return {};
}

Result<double> realOf(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  if (value == "NaN") return std::nan("");
  if (value == "Infinity") return HUGE_VAL;
  if (value == "-Infinity") return -HUGE_VAL;
  return misfit(fmt::format("expected a number, got {}", value.dump()));
}

Result<ModelValue> readLists(const std::string& file, const onnx::TypeProto& type) {
  AGLOW_TRY(const SharedBytes bytes, readFile(file));
  const std::string_view text(reinterpret_cast<const char*>(bytes.bytes.data()), bytes.bytes.size());
  const Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_discarded()) return misfit("expected JSON");
  std::vector<int64_t> dims;
  std::vector<Json> items;
  AGLOW_OK(flatten(parsed, 0, dims, items));
  AGLOW_TRY(const Shape shape, Shape::create(dims));
  if (tensorType(type).elemType == onnx::kStringType) {
    std::vector<std::string> words;
    for (const Json& item : items) {
      if (!item.is_string()) return misfit(fmt::format("expected a string, got {}", item.dump()));
      words.push_back(item.get<std::string>());
    }
    return ModelValue::of(StringTensor(shape, std::move(words)));
  }
  AGLOW_TRY(const ElemKind kind, onnx::elementKindOf(type));
  if (isFloat(kind)) {
    std::vector<double> numbers;
    for (const Json& item : items) {
      AGLOW_TRY(const double number, realOf(item));
      numbers.push_back(number);
    }
    return ModelValue::of(Tensor::fromDoubles(Type(kind, shape), numbers));
  }
  std::vector<int64_t> numbers;
  for (const Json& item : items) {
    const bool fits = item.is_boolean() || item.is_number_integer();
    if (!fits || (item.is_number_unsigned() && item.get<uint64_t>() > INT64_MAX))
      return misfit(fmt::format("expected a whole number, got {}", item.dump()));
    numbers.push_back(item.is_boolean() ? static_cast<int64_t>(item.get<bool>()) : item.get<int64_t>());
  }
  return ModelValue::of(Tensor::fromInts(Type(kind, shape), numbers));
}

// FILE.npz with the array that is meant.
Result<std::string> arrayIn(const std::string& file, const std::string& name) {
  AGLOW_TRY(const std::vector<std::string> names, npzNames(file));
  if (std::ranges::find(names, name) != names.end()) return fmt::format("{}:{}", file, name);
  if (names.size() == 1) return fmt::format("{}:{}", file, names.front());
  return Error{.code = Code::BadBinding,
               .message = fmt::format("the file holds no array '{}'", name),
               .where = file,
               .hint = fmt::format("it holds: {}; choose one with FILE.npz:NAME", fmt::join(names, ", "))};
}

template <class T>
Result<T> at(Result<T> result, const std::string& file) {
  if (result.ok()) return result;
  if (!result.error().where.empty()) return result;
  return std::move(result).error().at(file);
}

}  // namespace

Result<ModelValue> readValue(const std::string& file, const onnx::TypeProto& type, const std::string& name,
                             const media::Preprocess& images) {
  if (onnx::holdsMaps(type)) return readMaps(file, type);
  if (file.ends_with(".json")) return at(readLists(file, type), file);
  if (file.ends_with(".pb")) {
    AGLOW_TRY(onnx::NamedValue read, onnx::readProtoValue(file, type));
    return std::move(read.value);
  }
  if (media::isImagePath(file)) return at(readImage(file, type, images), file);
  if (file.ends_with(".wav")) return at(readSound(file, type), file);
  if (file.ends_with(".npz")) {
    AGLOW_TRY(const std::string array, arrayIn(file, name));
    return onnx::readNpyValue(array, type);
  }
  return onnx::readNpyValue(file, type);
}

}  // namespace aglow::cli
