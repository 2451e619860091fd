#include "cli/media_options.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "support/file.h"

namespace aglow::cli {

namespace {

using Json = nlohmann::json;
constexpr int64_t kMaxSide = 1 << 16;

Error usage(std::string message, std::string hint = {}) {
  return {.code = Code::Usage, .message = std::move(message), .where = {}, .hint = std::move(hint)};
}

Result<int64_t> sideOf(std::string_view text, std::string_view option) {
  int64_t side = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), side);
  if (fault != std::errc() || end != text.data() + text.size() || side < 1 || side > kMaxSide)
    return usage(fmt::format("{}: '{}' is not a number of pixels", option, text),
                 "224, or 320x240 for width and height");
  return side;
}

// "224" or "320x240"; one number stands for both sides.
Result<media::Size> sizeOf(const std::string& text, std::string_view option) {
  const size_t at = text.find('x');
  AGLOW_TRY(const int64_t width, sideOf(std::string_view(text).substr(0, at), option));
  if (at == std::string::npos) return media::Size{width, width};
  AGLOW_TRY(const int64_t height, sideOf(std::string_view(text).substr(at + 1), option));
  return media::Size{width, height};
}

Status setResize(media::Preprocess& how, const std::string& text, std::string_view option) {
  how.shorter.reset();
  how.resize.reset();
  if (text.find('x') != std::string::npos) {
    AGLOW_TRY(how.resize, sizeOf(text, option));
  } else {
    AGLOW_TRY(how.shorter, sideOf(text, option));
  }
  return {};
}

Status setChannels(media::Preprocess& how, const std::string& word) {
  if (word != "rgb" && word != "bgr" && word != "gray") return usage("channels are rgb, bgr or gray");
  how.channels = word == "rgb" ? media::Channels::Rgb : word == "bgr" ? media::Channels::Bgr : media::Channels::Gray;
  return {};
}

Result<std::vector<double>> numbersOf(const std::vector<std::string>& words, std::string_view option) {
  std::vector<double> numbers;
  for (const std::string& word : words) {
    double value = 0;
    const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (fault != std::errc() || end != word.data() + word.size())
      return usage(fmt::format("{}: '{}' is not a number", option, word));
    numbers.push_back(value);
  }
  return numbers;
}

// A number, two of them, or what transformers writes: {"shortest_edge": 256}, {"height": 224, "width": 224}.
std::string sizeText(const Json& value) {
  const auto word = [](const Json& number) { return number.is_number_integer() ? number.dump() : std::string("?"); };
  if (value.is_array() && value.size() == 2) return word(value[0]) + "x" + word(value[1]);
  if (value.is_object() && value.contains("shortest_edge")) return word(value["shortest_edge"]);
  if (value.is_object() && value.contains("width") && value.contains("height"))
    return word(value["width"]) + "x" + word(value["height"]);
  return word(value);
}

Status setFrom(media::Preprocess& how, const Json& file) {
  // Each under Aglow's name and that of transformers.
  const auto find = [&](const char* own, const char* other) -> const Json* {
    const auto it = file.contains(own) ? file.find(own) : file.find(other);
    return it == file.end() || it->is_null() ? nullptr : &*it;
  };
  const auto list = [](const Json& value) {
    return value.is_array() ? value.get<std::vector<double>>() : std::vector{value.get<double>()};
  };
  if (const Json* value = find("resize", "size")) AGLOW_OK(setResize(how, sizeText(*value), "resize"));
  if (const Json* value = find("crop", "crop_size")) {
    AGLOW_TRY(how.crop, sizeOf(sizeText(*value), "crop"));
  }
  if (file.contains("do_center_crop") && file["do_center_crop"] == false) how.crop.reset();
  if (const Json* value = find("mean", "image_mean")) how.mean = list(*value);
  if (const Json* value = find("std", "image_std")) how.deviation = list(*value);
  if (const Json* value = find("scale", "rescale_factor")) how.scale = value->get<double>();
  if (const Json* value = find("channels", "channels")) AGLOW_OK(setChannels(how, value->get<std::string>()));
  if (const Json* value = find("imagenet", "imagenet")) how.imagenet = value->get<bool>();
  return {};
}

Status readPreprocess(media::Preprocess& how, const std::string& path) {
  AGLOW_TRY(const SharedBytes file, readFile(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  const Json parsed = Json::parse(text, nullptr, false);
  if (!parsed.is_object()) return usage("expected a JSON object with resize, crop, mean, std, …").at(path);
  try {
    if (Status set = setFrom(how, parsed); !set.ok()) return std::move(set).error().at(path);
  } catch (const Json::exception&) {
    return usage("a value of it is of another type than expected").at(path);
  }
  return {};
}

}  // namespace

std::vector<Option> MediaOptions::options() {
  return inGroup(
      "Images and sounds as inputs",
      {{"--imagenet", &imagenet, "As models of ImageNet want them: 256 pixels, the middle 224, its mean and deviation"},
       {.names = "--preprocess",
        .place = &preprocess,
        .doc = "A JSON file with these settings, as resize, crop, mean, std, scale, channels; or that of transformers",
        .type = "FILE",
        .reads = true},
       {"--resize", &resize, "Pixels of the shorter side, or width and height (default: what the input declares)",
        "N|WxH"},
       {"--crop", &crop, "The middle of this size, after --resize", "N|WxH"},
       {.names = "--scale",
        .place = &scale,
        .doc = "What samples from 0 to 255 are multiplied by (default: 1/255 for floats, 1 for integers)",
        .check = UpTo{1e9}},
       {.names = "--mean",
        .place = &mean,
        .doc = "Subtracted after that, for each channel",
        .type = "X,…",
        .commas = true},
       {.names = "--std", .place = &deviation, .doc = "Divided by after that", .type = "X,…", .commas = true},
       {"--channels", &channels, "Their order: rgb, bgr or gray", "NAME", OneOf{"rgb,bgr,gray"}}});
}

Result<media::Preprocess> MediaOptions::parse() const {
  media::Preprocess how;
  if (!preprocess.empty()) AGLOW_OK(readPreprocess(how, preprocess));
  how.imagenet = how.imagenet || imagenet;
  if (!resize.empty()) AGLOW_OK(setResize(how, resize, "--resize"));
  if (!crop.empty()) {
    AGLOW_TRY(how.crop, sizeOf(crop, "--crop"));
  }
  if (scale > 0) how.scale = scale;
  if (!channels.empty()) AGLOW_OK(setChannels(how, channels));
  if (!mean.empty()) {
    AGLOW_TRY(how.mean, numbersOf(mean, "--mean"));
  }
  if (!deviation.empty()) {
    AGLOW_TRY(how.deviation, numbersOf(deviation, "--std"));
  }
  for (const double value : how.deviation)
    if (!(value > 0)) return usage("a deviation is not positive");
  return how;
}

}  // namespace aglow::cli
