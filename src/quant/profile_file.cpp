#include "quant/profile_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "support/file_set.h"

namespace aglow::quant {

namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "aglow profile";
constexpr int64_t kVersion = 2;

Error malformed(std::string message) {
  return {.code = Code::BadNpy,
          .message = "this is no profile: " + std::move(message),
          .where = {},
          .hint = "`aglow profile` writes them"};
}

std::string quotedJson(const auto& text) { return json(text).dump(-1, ' ', false, json::error_handler_t::replace); }

// Neighbouring counts in one list, by the bin of the first; long runs of zeros are left out.
std::string countsText(const std::vector<int64_t>& counts) {
  constexpr size_t kFewZeros = 8;
  std::string out;
  size_t zeros = kFewZeros;
  for (size_t bin = 0; bin < counts.size(); ++bin) {
    if (counts[bin] == 0) {
      ++zeros;
      continue;
    }
    if (zeros < kFewZeros)
      for (; zeros > 0; --zeros) out += ",0";
    else
      out += fmt::format("{}\"{}\": [", out.empty() ? "" : "], ", bin);
    out += fmt::format("{}{}", out.ends_with('[') ? "" : ",", counts[bin]);
    zeros = 0;
  }
  return fmt::format("{{{}{}}}", out, out.empty() ? "" : "]");
}

std::string channelsText(const ChannelProfile& channels) {
  return fmt::format(R"({{"samples": {}, "min": [{}], "max": [{}], "mean": [{}], "square": [{}]}})", channels.samples,
                     fmt::join(channels.min, ","), fmt::join(channels.max, ","), fmt::join(channels.mean, ","),
                     fmt::join(channels.square, ","));
}

std::string valueText(const ValueProfile& value) {
  std::string out = "{";
  if (value.elements > 0) out += fmt::format("\"min\": {}, \"max\": {}, ", value.min, value.max);
  return out + fmt::format("\"not_finite\": {}, \"counts\": {}}}", value.notFinite, countsText(value.counts));
}

// A member of an object that has to be there, and of this form.
Result<int64_t> integerIn(const json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_number_integer() || (it->is_number_unsigned() && it->get<uint64_t>() > INT64_MAX))
    return malformed(fmt::format("expected an integer '{}'", name));
  const auto number = it->get<int64_t>();
  if (number < 0) return malformed(fmt::format("expected '{}' from 0 on, got {}", name, number));
  return number;
}

Result<float> floatIn(const json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_number()) return malformed(fmt::format("expected a number '{}'", name));
  const auto number = static_cast<float>(it->get<double>());
  if (!std::isfinite(number)) return malformed(fmt::format("expected a finite '{}'", name));
  return number;
}

Result<ValueProfile> parseValue(const json& object) {
  if (!object.is_object()) return malformed("expected an object");
  ValueProfile value;
  AGLOW_TRY(value.notFinite, integerIn(object, "not_finite"));
  const auto counts = object.find("counts");
  if (counts == object.end() || !counts->is_object()) return malformed("expected an object 'counts'");
  for (const auto& [first, list] : counts->items()) {
    size_t bin = 0;
    const auto [end, fault] = std::from_chars(first.data(), first.data() + first.size(), bin);
    if (fault != std::errc() || end != first.data() + first.size() || !list.is_array() || bin > value.counts.size() ||
        list.size() > value.counts.size() - bin)
      return malformed(fmt::format("expected counts of bins from 0 to {} at '{}'", value.counts.size() - 1, first));
    for (const json& count : list) {
      if (!count.is_number_unsigned() || count.get<uint64_t>() > (uint64_t{1} << 50))
        return malformed("expected counts that are integers from 0 on");
      value.counts[bin++] = count.get<int64_t>();
    }
  }
  value.elements = std::accumulate(value.counts.begin(), value.counts.end(), int64_t{0});
  if (value.elements == 0) return value;
  AGLOW_TRY(value.min, floatIn(object, "min"));
  AGLOW_TRY(value.max, floatIn(object, "max"));
  if (value.min > value.max) return malformed(fmt::format("min {} is above max {}", value.min, value.max));
  return value;
}

template <class T>
Result<std::vector<T>> numbersIn(const json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_array()) return malformed(fmt::format("expected a list '{}'", name));
  std::vector<T> numbers;
  for (const json& one : *it) {
    const T number = one.is_number() ? static_cast<T>(one.get<double>()) : std::numeric_limits<T>::infinity();
    if (!std::isfinite(number)) return malformed(fmt::format("expected finite numbers in '{}'", name));
    numbers.push_back(number);
  }
  return numbers;
}

Result<ChannelProfile> parseChannels(const json& object) {
  if (!object.is_object()) return malformed("expected an object");
  ChannelProfile channels;
  AGLOW_TRY(channels.samples, integerIn(object, "samples"));
  AGLOW_TRY(channels.min, numbersIn<float>(object, "min"));
  AGLOW_TRY(channels.max, numbersIn<float>(object, "max"));
  AGLOW_TRY(channels.mean, numbersIn<double>(object, "mean"));
  AGLOW_TRY(channels.square, numbersIn<double>(object, "square"));
  const size_t size = channels.size();
  if (channels.max.size() != size || channels.mean.size() != size || channels.square.size() != size)
    return malformed("expected lists of one length");
  return channels;
}

}  // namespace

std::string profileText(const Profile& profile) {
  std::string out = fmt::format(
      "{{\n\"format\": \"{}\",\n\"version\": {},\n\"model\": \"{:016x}\",\n\"samples\": {},\n\"values\": {{", kFormat,
      kVersion, profile.model, profile.samples);
  std::string_view separator = "\n";
  for (const auto& [name, value] : profile.values) {
    out += fmt::format("{}{}: {}", separator, quotedJson(name), valueText(value));
    separator = ",\n";
  }
  out += "\n},\n\"channels\": {";
  separator = "\n";
  for (const auto& [name, value] : profile.channels) {
    out += fmt::format("{}{}: {}", separator, quotedJson(name), channelsText(value));
    separator = ",\n";
  }
  out += "\n}";
  if (!profile.keepFloat.empty()) out += ",\n\"keep_float\": " + quotedJson(profile.keepFloat);
  return out + "\n}\n";
}

Result<Profile> parseProfile(std::string_view text) {
  const json file = json::parse(text, nullptr, false);
  if (file.is_discarded()) return malformed("it is not JSON, or ends too early");
  if (!file.is_object() || file.value("format", json()) != kFormat)
    return malformed(fmt::format("expected '\"format\": \"{}\"'", kFormat));
  AGLOW_TRY(const int64_t version, integerIn(file, "version"));
  if (version != kVersion)
    return Error{.code = Code::BadNpy,
                 .message = fmt::format("the profile has version {}; expected version {}", version, kVersion),
                 .where = {},
                 .hint = "make it again with this program"};
  Profile profile;
  AGLOW_TRY(profile.samples, integerIn(file, "samples"));
  const json model = file.value("model", json());
  const std::string hex = model.is_string() ? model.get<std::string>() : "";
  const auto [end, fault] = std::from_chars(hex.data(), hex.data() + hex.size(), profile.model, 16);
  if (hex.size() != 16 || fault != std::errc() || end != hex.data() + hex.size())
    return malformed("expected a 'model' of 16 hexadecimal digits");
  const json values = file.value("values", json());
  if (!values.is_object()) return malformed("expected an object 'values'");
  for (const auto& [name, object] : values.items()) {
    auto value = parseValue(object);
    if (!value.ok()) return std::move(value).error().at(fmt::format("value '{}'", name));
    profile.values.emplace(name, *std::move(value));
  }
  const json channels = file.value("channels", json());
  if (!channels.is_object()) return malformed("expected an object 'channels'");
  for (const auto& [name, object] : channels.items()) {
    auto value = parseChannels(object);
    if (!value.ok()) return std::move(value).error().at(fmt::format("channels of '{}'", name));
    profile.channels.emplace(name, *std::move(value));
  }
  const json kept = file.value("keep_float", json::array());
  if (!kept.is_array() || !std::all_of(kept.begin(), kept.end(), [](const json& name) { return name.is_string(); }))
    return malformed("expected a list of names 'keep_float'");
  profile.keepFloat = kept.get<std::set<std::string>>();
  return profile;
}

Status writeProfile(const std::string& path, const Profile& profile) {
  const std::string text = profileText(profile);
  return writeFileAtomically(path, std::as_bytes(std::span(text)));
}

Result<Profile> readProfile(const std::string& path) {
  AGLOW_TRY(const SharedBytes file, readFile(path));
  auto profile = parseProfile({reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()});
  if (!profile.ok()) return std::move(profile).error().at(path);
  return profile;
}

}  // namespace aglow::quant
