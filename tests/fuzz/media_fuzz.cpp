// Any bytes as an image and as a sound: the answer is pixels, samples or an error.
#include "media/image.h"
#include "media/wav.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aglow;
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto image = media::decodeImage(bytes); image.ok()) {
    const auto gray = media::grayscale(*image);
    if (gray.samples.size() * 3 != image->samples.size()) __builtin_trap();
  }
  if (const auto sound = media::decodeWav(bytes); sound.ok() && sound->length() != std::ssize(sound->mono()))
    __builtin_trap();
  return 0;
}
