// BMP: a header, maybe a table of colours, and rows of 1 to 32 bits a pixel, padded to four bytes. Not compressed.
#include <cstring>

#include "media/formats.h"

namespace aglow::media {

namespace {

constexpr std::string_view kName = "BMP";
constexpr size_t kFileHeader = 14, kInfoHeader = 40;

uint32_t number(File file, size_t at, int bytes) {
  uint32_t value = 0;
  for (int i = bytes; i-- > 0;) value = value << 8 | std::to_integer<uint32_t>(file[at + static_cast<size_t>(i)]);
  return value;
}

}  // namespace

Result<Image> decodeBmp(File file) {
  if (file.size() < kFileHeader + kInfoHeader) return badImage(kName, "it ends inside of its header");
  const uint32_t dataAt = number(file, 10, 4), headerSize = number(file, 14, 4), compression = number(file, 30, 4);
  const auto width = static_cast<int32_t>(number(file, 18, 4)), rows = static_cast<int32_t>(number(file, 22, 4));
  const uint32_t bits = number(file, 28, 2);
  constexpr uint32_t kPlain = 0, kFields = 3;
  if (headerSize < kInfoHeader) return badImage(kName, "its header is of a kind that nobody writes any more");
  if (compression != kPlain && !(compression == kFields && bits == 32)) return badImage(kName, "it is compressed");
  if (bits != 1 && bits != 4 && bits != 8 && bits != 24 && bits != 32)
    return badImage(kName, "its pixels have another number of bits than 1, 4, 8, 24 and 32");
  if (rows == INT32_MIN) return badImage(kName, "its height is none");
  AGLOW_TRY(Image image, blankImage(kName, file, width, rows < 0 ? -rows : rows));
  const size_t stride = (static_cast<size_t>(width) * bits + 31) / 32 * 4;
  if (dataAt > file.size() || file.size() - dataAt < stride * static_cast<size_t>(image.height))
    return badImage(kName, "it ends inside of its pixels");
  const size_t tableAt = kFileHeader + headerSize, colors = bits <= 8 ? size_t{1} << bits : 0;
  const auto color = [&](size_t index, uint8_t* to) {
    const size_t at = tableAt + 4 * index;
    for (size_t c = 0; c < 3; ++c) to[c] = at + 4 <= dataAt ? std::to_integer<uint8_t>(file[at + 2 - c]) : 0;
  };
  if (tableAt > dataAt || headerSize > file.size() || (colors > 0 && tableAt + 4 > dataAt))
    return badImage(kName, "its colours lie outside of it");
  for (int64_t y = 0; y < image.height; ++y) {
    const int64_t from = rows < 0 ? y : image.height - 1 - y;
    const std::byte* row = file.data() + dataAt + static_cast<size_t>(from) * stride;
    uint8_t* to = image.samples.data() + y * width * 3;
    for (size_t x = 0; x < static_cast<size_t>(width); ++x, to += 3) {
      if (bits >= 24) {
        const std::byte* pixel = row + x * (bits / 8);
        for (size_t c = 0; c < 3; ++c) to[c] = std::to_integer<uint8_t>(pixel[2 - c]);
        continue;
      }
      const size_t perByte = 8 / bits;
      const auto shift = static_cast<uint32_t>((perByte - 1 - x % perByte) * bits);
      color(std::to_integer<uint32_t>(row[x / perByte]) >> shift & ((1u << bits) - 1), to);
    }
  }
  return image;
}

Result<std::string> encodeBmp(const Image& image) {
  const size_t stride = (static_cast<size_t>(image.width) * 24 + 31) / 32 * 4, rows = static_cast<size_t>(image.height);
  std::string out = "BM";
  const auto add = [&](size_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  };
  add(kFileHeader + kInfoHeader + stride * rows, 4);
  add(0, 4);
  add(kFileHeader + kInfoHeader, 4);
  add(kInfoHeader, 4);
  add(static_cast<size_t>(image.width), 4);
  add(rows, 4);
  add(1, 2);
  add(24, 2);
  add(0, 4);
  add(stride * rows, 4);
  add(2835, 4);  // pixels a metre: 72 an inch
  add(2835, 4);
  add(0, 8);
  for (int64_t y = image.height; y-- > 0;) {
    const size_t begin = out.size();
    for (int64_t x = 0; x < image.width; ++x)
      for (int64_t c = 3; c-- > 0;) out += static_cast<char>(image.at(y, x, image.channels == 3 ? c : 0));
    out.resize(begin + stride, '\0');
  }
  return out;
}

}  // namespace aglow::media
