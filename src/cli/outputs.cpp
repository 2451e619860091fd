#include "cli/outputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/standard_streams.h"
#include "cli/types_json.h"
#include "cli/value_json.h"
#include "media/preprocess.h"
#include "support/file_set.h"
#include "support/quote.h"
#include "tensor/npy.h"
#include "tensor/npz.h"

namespace aglow::cli {

namespace {

using Json = nlohmann::ordered_json;

// Outputs go under their positions, the items of a sequence into a folder.
Status addValue(FileSet& files, const std::string& base, const ModelValue& value, bool asMaps) {
  if (value.none) return files.add(base + ".none", std::string_view());
  if (asMaps) {
    AGLOW_TRY(const std::string text, mapsText(value));
    return files.add(base + ".json", text + "\n");
  }
  if (value.isSequence) {
    AGLOW_OK(files.addFolder(base));
    for (size_t i = 0; i < value.tensors.size(); ++i)
      AGLOW_OK(addNpy(files, fmt::format("{}/{}.npy", base, i), value.tensors[i]));
    for (size_t i = 0; i < value.strings.size(); ++i)
      AGLOW_OK(addNpy(files, fmt::format("{}/{}.npy", base, i), value.strings[i]));
    return {};
  }
  return value.isStrings() ? addNpy(files, base + ".npy", value.strings.front())
                           : addNpy(files, base + ".npy", value.tensor());
}

Status writeFolder(const std::string& folder, const std::vector<NamedOutputs>& all) {
  return writeTogether([&](FileSet& files) -> Status {
    AGLOW_OK(files.addFolder(folder));
    size_t position = 0;
    for (const NamedOutputs& outputs : all)
      for (size_t i = 0; i < outputs.values.size(); ++i)
        AGLOW_OK(addValue(files, fmt::format("{}/{}", folder, position++), outputs.values[i], outputs.areMaps[i]));
    return {};
  });
}

constexpr size_t kShown = 12;

std::vector<std::string> firstElements(const StringTensor& tensor) {
  std::vector<std::string> texts;
  for (const std::string& text : tensor.strings()) {
    if (texts.size() == kShown) break;
    texts.push_back(aglow::quoted(text));
  }
  return texts;
}

std::vector<std::string> firstElements(const Tensor& tensor) {
  std::vector<std::string> texts;
  const auto add = [&](const auto& numbers, const char* form) {
    for (size_t i = 0; i < std::min(numbers.size(), kShown); ++i)
      texts.push_back(fmt::format(fmt::runtime(form), numbers[i]));
  };
  if (isFloat(tensor.type().kind()))
    add(tensor.doubles(), "{:.6g}");
  else
    add(tensor.toInts(), "{}");
  return texts;
}

std::string preview(const std::vector<std::string>& texts, int64_t count) {
  return fmt::format("{}{}", fmt::join(texts, ", "), count > std::ssize(texts) ? ", …" : "");
}

std::string preview(const StringTensor& tensor) {
  return "[" + preview(firstElements(tensor), tensor.shape().elements()) + "]";
}

std::string preview(const Tensor& tensor) {
  return "[" + preview(firstElements(tensor), tensor.type().elements()) + "]";
}

std::string preview(const MapValue& map) {
  std::vector<std::string> texts = map.hasStrings() ? firstElements(map.strings()) : firstElements(map.numbers());
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string key = keyText(map.keys(), static_cast<int64_t>(i));
    texts[i] = fmt::format("{}: {}", areStrings(map.keys()) ? aglow::quoted(key) : key, texts[i]);
  }
  return "{" + preview(texts, map.size()) + "}";
}

// JSON has no numbers that are not finite.
Json numberJson(double value) {
  return std::isfinite(value) ? Json(value) : std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

Json elementsJson(const Tensor& tensor) {
  Json elements = Json::array();
  if (isFloat(tensor.type().kind()))
    for (const double value : tensor.doubles()) elements.push_back(numberJson(value));
  else
    for (const int64_t value : tensor.toInts()) elements.push_back(value);
  return {{"type", typeJson(tensor.type())}, {"elements", std::move(elements)}};
}

Json elementsJson(const StringTensor& tensor) { return {{"type", tensor.text()}, {"elements", tensor.strings()}}; }

Result<Json> valueJson(const ModelValue& value, bool asMaps) {
  if (value.none) return Json();
  if (asMaps) {
    AGLOW_TRY(const std::string text, mapsText(value));
    return Json{{"maps", Json::parse(text)}};
  }
  Json items = Json::array();
  for (const Tensor& tensor : value.tensors) items.push_back(elementsJson(tensor));
  for (const StringTensor& tensor : value.strings) items.push_back(elementsJson(tensor));
  return value.isSequence ? Json{{"sequence", std::move(items)}} : std::move(items.front());
}

Result<NamedArrays> arraysOf(const std::vector<NamedOutputs>& all) {
  NamedArrays arrays;
  const auto add = [&](std::string name, const auto& tensor) -> Status {
    AGLOW_TRY(std::string bytes, npyBytes(tensor));
    arrays.emplace_back(std::move(name), std::move(bytes));
    return {};
  };
  for (const NamedOutputs& outputs : all)
    for (size_t i = 0; i < outputs.values.size(); ++i) {
      const ModelValue& value = outputs.values[i];
      const std::string name = outputs.prefix + outputs.names[i];
      if (outputs.areMaps[i])
        return Error{.code = Code::UnsupportedFeature,
                     .message = fmt::format("output '{}' holds maps, which no array can hold", name),
                     .where = {},
                     .hint = "--output-dir writes them as .json"};
      for (size_t k = 0; k < value.tensors.size(); ++k)
        AGLOW_OK(add(value.isSequence ? fmt::format("{}.{}", name, k) : name, value.tensors[k]));
      for (size_t k = 0; k < value.strings.size(); ++k)
        AGLOW_OK(add(value.isSequence ? fmt::format("{}.{}", name, k) : name, value.strings[k]));
    }
  return arrays;
}

// What a file with this ending holds of a value.
Result<std::string> bytesFor(const std::string& path, const std::string& name, const ModelValue& value) {
  const auto other = [&](std::string_view what) {
    return Error{.code = Code::Usage,
                 .message = fmt::format("output '{}' is no tensor that {} holds", name, what),
                 .where = path,
                 .hint = "single outputs are written as .npy, .npz, .json, .txt, .png, .jpg, .bmp, .ppm or .pgm"};
  };
  if (path.ends_with(".json")) {
    AGLOW_TRY(const Json json, valueJson(value, !value.maps.empty()));
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  if (value.isStrings()) {
    if (path.ends_with(".txt")) return fmt::format("{}\n", fmt::join(value.strings.front().strings(), "\n"));
    if (path.ends_with(".npy")) return npyBytes(value.strings.front());
    return other("such a file");
  }
  if (!value.isTensor()) return other("such a file");
  if (path.ends_with(".npy")) return npyBytes(value.tensor());
  if (path.ends_with(".npz")) {
    AGLOW_TRY(const std::string array, npyBytes(value.tensor()));
    return npzBytes({{name, array}});
  }
  if (path.ends_with(".txt")) {
    std::string text;
    if (isFloat(value.tensor().type().kind()))
      for (const double number : value.tensor().doubles()) text += fmt::format("{:.9g}\n", number);
    else
      for (const int64_t number : value.tensor().toInts()) text += fmt::format("{}\n", number);
    return text;
  }
  if (!media::isImagePath(path)) return other("a file of this ending");
  AGLOW_TRY(const media::Image image, media::tensorImage(value.tensor()));
  return media::encodeImage(image, path);
}

}  // namespace

std::string outputsText(const std::vector<NamedOutputs>& all) {
  std::string out;
  const auto add = [&](const std::string& name, const std::string& type, const auto& tensor) {
    out += fmt::format("{} : {} = {}\n", name, type, preview(tensor));
  };
  for (const NamedOutputs& outputs : all) {
    for (size_t i = 0; i < outputs.values.size(); ++i) {
      const ModelValue& value = outputs.values[i];
      const std::string name = outputs.prefix + outputs.names[i];
      if (value.none) out += fmt::format("{} : none\n", name);
      const auto itemName = [&](size_t k) { return value.isSequence ? fmt::format("{}[{}]", name, k) : name; };
      for (size_t k = 0; k < value.tensors.size(); ++k)
        add(itemName(k), value.tensors[k].type().text(), value.tensors[k]);
      for (size_t k = 0; k < value.strings.size(); ++k) add(itemName(k), value.strings[k].text(), value.strings[k]);
      for (size_t k = 0; k < value.maps.size(); ++k) add(itemName(k), value.maps[k].text(), value.maps[k]);
    }
  }
  return out;
}

Result<Json> outputsJson(const std::vector<NamedOutputs>& all) {
  Json rows = Json::array();
  for (const NamedOutputs& outputs : all)
    for (size_t i = 0; i < outputs.values.size(); ++i) {
      AGLOW_TRY(const Json value, valueJson(outputs.values[i], outputs.areMaps[i]));
      Json row = {{"name", outputs.prefix + outputs.names[i]}};
      if (value.is_null()) row["none"] = true;
      for (const auto& [key, part] : value.items()) row[key] = part;
      rows.push_back(std::move(row));
    }
  return Json{{"outputs", std::move(rows)}};
}

Status writeOutputs(const std::string& place, const std::vector<NamedOutputs>& all) {
  const bool toStdout = place == kStandardStream;
  if (!toStdout && !place.ends_with(".npz")) return writeFolder(place, all);
  AGLOW_TRY(const NamedArrays arrays, arraysOf(all));
  if (toStdout && arrays.size() == 1) return printOut(arrays.front().second);
  AGLOW_TRY(const std::string bytes, npzBytes(arrays));
  return writeOut(place, bytes);
}

Status saveOutputs(const std::vector<std::string>& assignments, const std::vector<NamedOutputs>& all) {
  std::vector<std::pair<std::string, const ModelValue*>> outputs;
  for (const NamedOutputs& one : all)
    for (size_t i = 0; i < one.values.size(); ++i) outputs.emplace_back(one.prefix + one.names[i], &one.values[i]);
  return writeTogether([&](FileSet& files) -> Status {
    for (const std::string& word : assignments) {
      const size_t equals = word.rfind('=');
      const bool named = equals != std::string::npos;
      const std::string name = named ? word.substr(0, equals) : outputs.size() == 1 ? outputs.front().first : "";
      const auto found = std::find_if(outputs.begin(), outputs.end(), [&](const auto& o) { return o.first == name; });
      if (found == outputs.end()) {
        std::vector<std::string> names;
        for (const auto& output : outputs) names.push_back(output.first);
        return Error{.code = Code::BadBinding,
                     .message = named ? fmt::format("--save {}: there is no output '{}'", word, name)
                                      : fmt::format("--save {}: there are {} outputs", word, outputs.size()),
                     .where = {},
                     .hint = fmt::format("NAME=FILE, of: {}", fmt::join(names, ", "))};
      }
      const std::string path = named ? word.substr(equals + 1) : word;
      AGLOW_TRY(const std::string bytes, bytesFor(path, name, *found->second));
      AGLOW_OK(files.add(path, bytes));
    }
    return {};
  });
}

}  // namespace aglow::cli
