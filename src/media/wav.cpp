// RIFF: chunks with a name and a size; "fmt " says what the samples are, "data" holds them.
#include "media/wav.h"

#include <bit>
#include <string>
#include <string_view>

namespace aglow::media {

namespace {

using File = std::span<const std::byte>;

Error bad(std::string_view why) {
  return {.code = Code::BadNpy, .message = "the WAV file cannot be read: " + std::string(why)};
}

uint64_t number(File file, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(file[at + static_cast<size_t>(i)]);
  return value;
}

std::string_view name(File file, size_t at) { return {reinterpret_cast<const char*>(file.data()) + at, 4}; }

struct Coding {
  uint64_t kind = 0, channels = 0, rate = 0, bits = 0;
};
constexpr uint64_t kWhole = 1, kFloat = 3, kExtended = 0xfffe;

float sampleAt(File file, size_t at, const Coding& coding) {
  const uint64_t bits = number(file, at, static_cast<int>(coding.bits / 8));
  if (coding.kind == kFloat)
    return coding.bits == 32 ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                             : static_cast<float>(std::bit_cast<double>(bits));
  if (coding.bits == 8) return (static_cast<float>(bits) - 128) / 128;
  const auto shift = static_cast<int>(64 - coding.bits);
  const auto value = static_cast<int64_t>(bits << shift) >> shift;
  return static_cast<float>(static_cast<double>(value) / static_cast<double>(int64_t{1} << (coding.bits - 1)));
}

}  // namespace

std::vector<float> Sound::mono() const {
  std::vector<float> mean(static_cast<size_t>(length()));
  for (size_t i = 0; i < mean.size(); ++i) {
    for (int64_t c = 0; c < channels; ++c)
      mean[i] += samples[i * static_cast<size_t>(channels) + static_cast<size_t>(c)];
    mean[i] /= static_cast<float>(channels);
  }
  return mean;
}

Result<Sound> decodeWav(File file) {
  if (file.size() < 12 || name(file, 0) != "RIFF" || name(file, 8) != "WAVE")
    return bad("it does not begin as one does");
  Coding coding;
  for (size_t at = 12; file.size() - at >= 8;) {
    const std::string_view chunk = name(file, at);
    const size_t size = number(file, at + 4, 4), begin = at + 8;
    const size_t there = std::min(size, file.size() - begin);
    if (chunk == "fmt ") {
      if (there < 16) return bad("its header is too short");
      coding = {.kind = number(file, begin, 2),
                .channels = number(file, begin + 2, 2),
                .rate = number(file, begin + 4, 4),
                .bits = number(file, begin + 14, 2)};
      if (coding.kind == kExtended && there >= 26) coding.kind = number(file, begin + 24, 2);
    } else if (chunk == "data") {
      const bool whole =
          coding.kind == kWhole && (coding.bits == 8 || coding.bits == 16 || coding.bits == 24 || coding.bits == 32);
      const bool real = coding.kind == kFloat && (coding.bits == 32 || coding.bits == 64);
      if (!whole && !real) return bad("its samples are compressed, or of a width that nobody uses");
      if (coding.channels < 1 || coding.channels > 64) return bad("it has no channels, or more than 64");
      const size_t bytes = coding.bits / 8, frame = bytes * coding.channels, frames = there / frame;
      Sound sound{
          .rate = static_cast<int64_t>(coding.rate), .channels = static_cast<int64_t>(coding.channels), .samples = {}};
      sound.samples.reserve(frames * coding.channels);
      for (size_t i = 0; i < frames * coding.channels; ++i)
        sound.samples.push_back(sampleAt(file, begin + i * bytes, coding));
      return sound;
    }
    if (there < size || file.size() - begin - there < (size & 1)) break;
    at = begin + size + (size & 1);
  }
  return bad("it has no samples");
}

}  // namespace aglow::media
