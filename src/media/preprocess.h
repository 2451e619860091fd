// Pixels as models take them: resized, cropped, scaled, in the order of channels and axes that an input has.
#pragma once

#include <optional>
#include <vector>

#include "media/image.h"
#include "tensor/tensor.h"

namespace aglow::media {

struct Size {
  int64_t width = 0, height = 0;
};

enum class Channels : uint8_t { Rgb, Bgr, Gray };

struct Preprocess {
  std::optional<int64_t> shorter;       // resize so that the shorter side has this many pixels
  std::optional<Size> resize;           // or to these sizes
  std::optional<Size> crop;             // then take the middle
  std::optional<double> scale;          // of samples from 0 to 255; none: 1/255 for floats, 1 for integers
  std::vector<double> mean, deviation;  // subtracted and divided by after that, for each channel or for all
  std::optional<Channels> channels;     // none: as many as the input has, red first
  // What the models of ImageNet are trained with: 256 of every 224 pixels, the middle, and the mean of its images.
  bool imagenet = false;
};

// What an input declares: its kind, and its sizes, where -1 is open.
struct ImageInput {
  ElemKind kind = ElemKind::Float32;
  std::vector<int64_t> dims;
};

// The image as a tensor of the input's rank: [N,C,H,W], [N,H,W,C], [C,H,W], [H,W,C] or [H,W]; N is 1, and the axis with
// 1 or 3 channels tells which. Without sizes to resize to, those that the input declares. BadBinding where that cannot
// be.
Result<Tensor> imageTensor(const Image& image, const Preprocess& how, const ImageInput& input);
// The inverse for what a model gives, with samples from 0 to 1, from -1 to 1 or from 0 to 255, or classes of pixels
// (the largest of more than four channels, each in a colour of its own).
Result<Image> tensorImage(const Tensor& tensor);

// By the mean of what a pixel covers, or linearly between pixels where there are more than before.
Image resized(const Image& image, Size to);

}  // namespace aglow::media
