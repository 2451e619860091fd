// Which format a file has, and what all of them have in common.
#include "media/image.h"

#include <fmt/format.h>

#include <algorithm>

#include "media/formats.h"

namespace aglow::media {

namespace {

constexpr int64_t kMaxSide = 1 << 16, kMaxPixels = int64_t{1} << 28;
// A few bytes can claim many pixels. Up to the first bound they may: decoding that takes a moment. Beyond it
// photographs and scans have a byte for fewer pixels than the second by far.
constexpr int64_t kMaxPixelsOfAnyFile = 1 << 24, kMaxPixelsPerByte = 1024;

std::string_view textOf(File file) { return {reinterpret_cast<const char*>(file.data()), file.size()}; }

bool begins(File file, std::string_view with) { return textOf(file).starts_with(with); }

bool isPnm(File file) {
  const std::string_view text = textOf(file);
  return text.size() > 2 && text[0] == 'P' && text[1] >= '1' && text[1] <= '6' &&
         (text[2] == '\n' || text[2] == ' ' || text[2] == '\t' || text[2] == '\r');
}

struct Format {
  std::string_view name;
  bool (*matches)(File);
  Result<Image> (*decode)(File);
};

constexpr Format kFormats[] = {
    {"JPEG", [](File f) { return begins(f, "\xff\xd8\xff"); }, decodeJpeg},
    {"PNG", [](File f) { return begins(f, "\x89PNG\r\n\x1a\n"); }, decodePng},
    {"WebP", [](File f) { return begins(f, "RIFF") && textOf(f).substr(0, 12).ends_with("WEBP"); }, decodeWebp},
    {"TIFF", [](File f) { return begins(f, std::string_view("II*\0", 4)) || begins(f, std::string_view("MM\0*", 4)); },
     decodeTiff},
    {"JPEG 2000",
     [](File f) {
       return begins(f, std::string_view("\0\0\0\x0cjP  \r\n\x87\n", 12)) ||
              begins(f, std::string_view("\xff\x4f\xff\x51", 4));
     },
     decodeJpeg2000},
    {"BMP", [](File f) { return begins(f, "BM"); }, decodeBmp},
    {"PNM", isPnm, decodePnm},
};

constexpr std::string_view kEndings[] = {".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".jp2",
                                         ".j2k", ".bmp",  ".ppm", ".pgm",  ".pnm", ".pbm"};

std::string inLowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

const Format* formatOf(File file) {
  const auto found =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& f) { return f.matches(file); });
  return found == std::end(kFormats) ? nullptr : found;
}

}  // namespace

Error badImage(std::string_view format, std::string_view why) {
  return {.code = Code::BadNpy, .message = fmt::format("the {} file cannot be read: {}", format, why)};
}

Result<Image> blankImage(std::string_view format, File file, int64_t width, int64_t height) {
  if (width < 1 || height < 1 || width > kMaxSide || height > kMaxSide || width * height > kMaxPixels)
    return badImage(format, fmt::format("{} by {} pixels, expected at least one, at most {} a side and {} in all",
                                        width, height, kMaxSide, kMaxPixels));
  if (width * height > kMaxPixelsOfAnyFile && width * height / kMaxPixelsPerByte >= std::ssize(file))
    return badImage(
        format, fmt::format("{} by {} pixels in {} bytes, expected a byte for every {} pixels where there are over {}",
                            width, height, file.size(), kMaxPixelsPerByte, kMaxPixelsOfAnyFile));
  Image image{.width = width, .height = height, .channels = 3, .samples = {}};
  image.samples.resize(static_cast<size_t>(width * height * image.channels));
  return image;
}

std::string_view imageFormat(File file) {
  const Format* format = formatOf(file);
  return format == nullptr ? std::string_view() : format->name;
}

bool isImagePath(std::string_view path) {
  const std::string lower = inLowerCase(path);
  return std::any_of(std::begin(kEndings), std::end(kEndings), [&](std::string_view e) { return lower.ends_with(e); });
}

Result<Image> decodeImage(File file) {
  const Format* format = formatOf(file);
  if (format != nullptr) return format->decode(file);
  return Error{.code = Code::BadNpy,
               .message = "this is no image file that is known",
               .where = {},
               .hint = "known are JPEG, PNG, WebP, TIFF, JPEG 2000, BMP and PNM"};
}

Image grayscale(const Image& rgb) {
  if (rgb.channels == 1) return rgb;
  Image gray{.width = rgb.width, .height = rgb.height, .channels = 1, .samples = {}};
  gray.samples.resize(rgb.samples.size() / 3);
  // 0.299, 0.587 and 0.114 in 16 bits after the point, rounded.
  for (size_t i = 0; i < gray.samples.size(); ++i) {
    const uint32_t r = rgb.samples[3 * i], g = rgb.samples[3 * i + 1], b = rgb.samples[3 * i + 2];
    gray.samples[i] = static_cast<uint8_t>((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16);
  }
  return gray;
}

Result<std::string> encodeImage(const Image& image, std::string_view path) {
  const std::string lower = inLowerCase(path);
  if (lower.ends_with(".png")) return encodePng(image);
  if (lower.ends_with(".jpg") || lower.ends_with(".jpeg")) return encodeJpeg(image);
  if (lower.ends_with(".bmp")) return encodeBmp(image);
  if (lower.ends_with(".ppm") || lower.ends_with(".pgm") || lower.ends_with(".pnm")) return encodePnm(image);
  return Error{.code = Code::Usage,
               .message = "images are written as .png, .jpg, .bmp, .ppm or .pgm",
               .where = std::string(path)};
}

}  // namespace aglow::media
