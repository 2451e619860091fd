// WAV files as samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "support/error.h"

namespace aglow::media {

struct Sound {
  int64_t rate = 0;  // samples a second
  int64_t channels = 0;
  std::vector<float> samples;  // from -1 to 1, those of one moment side by side

  int64_t length() const { return channels == 0 ? 0 : static_cast<int64_t>(samples.size()) / channels; }
  // The mean of all channels.
  std::vector<float> mono() const;
};

// Whole numbers of 8, 16, 24 and 32 bits, floats of 32 and 64. BadNpy for a damaged file, or another kind.
Result<Sound> decodeWav(std::span<const std::byte> file);

}  // namespace aglow::media
