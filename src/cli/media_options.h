// How image files become inputs, from options, a file or a preset.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "media/preprocess.h"

namespace aglow::cli {

struct MediaOptions {
  std::string preprocess, resize, crop, channels;
  std::vector<std::string> mean, deviation;
  double scale = 0;  // 0: by the kind of the input
  bool imagenet = false;

  std::vector<Option> options();
  // What options say comes before what the file says. Usage error for numbers that are none.
  Result<media::Preprocess> parse() const;
};

}  // namespace aglow::cli
