// The formats, one file each. Decoders get the bytes of a file that begins as theirs do.
#pragma once

#include "media/image.h"

namespace aglow::media {

using File = std::span<const std::byte>;

// What is damaged, or too much.
Error badImage(std::string_view format, std::string_view why);
// An image of so many pixels with no samples yet; an error where the sizes are not those of an image, or are more than
// such a file can hold.
Result<Image> blankImage(std::string_view format, File file, int64_t width, int64_t height);

Result<Image> decodeJpeg(File file);
Result<Image> decodePng(File file);
Result<Image> decodeWebp(File file);
Result<Image> decodeTiff(File file);
Result<Image> decodeJpeg2000(File file);
Result<Image> decodeBmp(File file);
Result<Image> decodePnm(File file);

Result<std::string> encodeJpeg(const Image& image);
Result<std::string> encodePng(const Image& image);
Result<std::string> encodeBmp(const Image& image);
Result<std::string> encodePnm(const Image& image);

// For builds without the library.
inline Error withoutLibrary(std::string_view format, std::string_view package) {
  return {.code = Code::UnsupportedFeature,
          .message = std::string(format) + " files need a library that this build was made without",
          .where = {},
          .hint = "build it with " + std::string(package)};
}

}  // namespace aglow::media
