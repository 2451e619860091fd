// Image files as pixels, and back. Files are anybody's: sizes are checked before memory is taken, and what a library
// objects to is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/error.h"

namespace aglow::media {

// Rows from top to bottom, pixels from left to right, the channels of a pixel side by side: red, green and blue, or
// brightness alone.
struct Image {
  int64_t width = 0, height = 0, channels = 3;
  std::vector<uint8_t> samples;

  uint8_t at(int64_t y, int64_t x, int64_t c) const {
    return samples[static_cast<size_t>((y * width + x) * channels + c)];
  }
};

// "JPEG", "PNG", …, by the first bytes; empty where they are of none that is known.
std::string_view imageFormat(std::span<const std::byte> file);
// Whether the ending of a path is one of an image.
bool isImagePath(std::string_view path);

// Red, green and blue, whatever the file has; transparency is left out, and of several images the first is taken.
// BadNpy for a damaged file, or one with more than 2^28 pixels; UnsupportedFeature where this build lacks the library.
Result<Image> decodeImage(std::span<const std::byte> file);
// One channel, by the weights of ITU-R 601.
Image grayscale(const Image& rgb);

// The bytes of a file, by its ending: .png, .jpg, .bmp, .ppm or .pgm. Usage error for others.
Result<std::string> encodeImage(const Image& image, std::string_view path);

}  // namespace aglow::media
