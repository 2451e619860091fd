#include "media/formats.h"

#ifdef AGLOW_WEBP
#include <webp/decode.h>
#endif

namespace aglow::media {

#ifdef AGLOW_WEBP

Result<Image> decodeWebp(File file) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(file.data());
  int width = 0, height = 0;
  if (WebPGetInfo(bytes, file.size(), &width, &height) == 0) return badImage("WebP", "its header is damaged");
  AGLOW_TRY(Image image, blankImage("WebP", file, width, height));
  if (WebPDecodeRGBInto(bytes, file.size(), image.samples.data(), image.samples.size(), width * 3) == nullptr)
    return badImage("WebP", "its pixels are damaged");
  return image;
}

#else

Result<Image> decodeWebp(File) { return withoutLibrary("WebP", "libwebp-dev"); }

#endif

}  // namespace aglow::media
