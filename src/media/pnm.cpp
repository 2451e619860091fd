// PNM: a header of words, then samples as numbers (P1 to P3) or as bytes (P4 to P6).
#include <fmt/format.h>

#include "media/formats.h"

namespace aglow::media {

namespace {

constexpr std::string_view kName = "PNM";

class Reader {
public:
  explicit Reader(File file) : text_(reinterpret_cast<const char*>(file.data()), file.size()), at_(2) {}

  // The next number, after blanks and comments; -1 where there is none.
  int64_t number() {
    skipBlank();
    int64_t value = 0;
    const size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      if (value < kMost) value = value * 10 + (text_[at_] - '0');
    return at_ == begin ? -1 : value;
  }
  // One digit of a bitmap in words.
  int64_t digit() {
    skipBlank();
    return at_ < text_.size() ? text_[at_++] - '0' : -1;
  }
  // A single blank ends the header of a file of bytes.
  std::string_view bytes() const { return text_.substr(std::min(at_ + 1, text_.size())); }

private:
  static constexpr int64_t kMost = int64_t{1} << 40;
  void skipBlank() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '#')
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      else if (text_[at_] != ' ' && text_[at_] != '\t' && text_[at_] != '\r' && text_[at_] != '\n')
        return;
      if (at_ == text_.size()) return;
    }
  }

  std::string_view text_;
  size_t at_;
};

}  // namespace

Result<Image> decodePnm(File file) {
  const char kind = static_cast<char>(file[1]);
  const bool words = kind <= '3', bitmap = kind == '1' || kind == '4', color = kind == '3' || kind == '6';
  Reader reader(file);
  const int64_t width = reader.number(), height = reader.number(), most = bitmap ? 1 : reader.number();
  if (most < 1 || most > 65535) return badImage(kName, "its largest value is not from 1 to 65535");
  AGLOW_TRY(Image image, blankImage(kName, file, width, height));
  const int64_t channels = color ? 3 : 1, wide = most > 255 ? 2 : 1;
  const std::string_view bytes = reader.bytes();
  const int64_t rowBytes = bitmap ? (width + 7) / 8 : width * channels * wide;
  if (!words && std::ssize(bytes) < rowBytes * height) return badImage(kName, "it ends inside of its pixels");
  const auto byte = [&](int64_t at) {
    return static_cast<int64_t>(static_cast<uint8_t>(bytes[static_cast<size_t>(at)]));
  };
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < channels; ++c) {
        int64_t value = 0;
        if (words) {
          value = bitmap ? reader.digit() : reader.number();
        } else if (bitmap) {
          value = byte(y * rowBytes + x / 8) >> (7 - x % 8) & 1;
        } else {
          const int64_t at = y * rowBytes + (x * channels + c) * wide;
          value = wide == 2 ? byte(at) << 8 | byte(at + 1) : byte(at);
        }
        if (value < 0 || value > most) return badImage(kName, "a value is missing, or larger than the largest");
        if (bitmap) value = 1 - value;  // 1 is black
        const auto sample = static_cast<uint8_t>((value * 255 + most / 2) / most);
        for (int64_t to = color ? c : 0; to < (color ? c + 1 : 3); ++to)
          image.samples[static_cast<size_t>((y * width + x) * 3 + to)] = sample;
      }
  return image;
}

Result<std::string> encodePnm(const Image& image) {
  std::string out = fmt::format("{}\n{} {}\n255\n", image.channels == 3 ? "P6" : "P5", image.width, image.height);
  out.append(reinterpret_cast<const char*>(image.samples.data()), image.samples.size());
  return out;
}

}  // namespace aglow::media
