#include "media/preprocess.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace aglow::media {

namespace {

Error misfit(std::string message) { return {.code = Code::BadBinding, .message = std::move(message)}; }

// Where an input has its channels and sizes.
struct Axes {
  int channels = -1;  // none: the input has no axis for them
  int height = 0, width = 0;
};

Result<Axes> axesOf(const ImageInput& input) {
  const auto& dims = input.dims;
  const auto rank = static_cast<int>(dims.size());
  const auto counts = [&](int axis) {
    return dims[static_cast<size_t>(axis)] == 1 || dims[static_cast<size_t>(axis)] == 3;
  };
  const Error other = misfit(fmt::format(
      "an image is of rank 2, 3 or 4, with an axis of 1 or 3 channels; the input is [{}]", fmt::join(dims, ",")));
  if (rank == 2) return Axes{.channels = -1, .height = 0, .width = 1};
  if (rank != 3 && rank != 4) return other;
  if (rank == 4 && dims[0] > 1) return misfit(fmt::format("one image is given for a batch of {}", dims[0]));
  const int first = rank - 3;
  if (counts(first)) return Axes{.channels = first, .height = first + 1, .width = first + 2};
  if (counts(rank - 1)) return Axes{.channels = rank - 1, .height = first, .width = first + 1};
  return other;
}

Preprocess withPreset(Preprocess how, Size declared) {
  if (!how.imagenet) return how;
  const Size crop = declared.width > 0 && declared.height > 0 ? declared : Size{224, 224};
  if (!how.resize && !how.shorter) how.shorter = (std::min(crop.width, crop.height) * 256 + 112) / 224;
  if (!how.crop) how.crop = crop;
  if (how.mean.empty()) how.mean = {0.485, 0.456, 0.406};
  if (how.deviation.empty()) how.deviation = {0.229, 0.224, 0.225};
  if (!how.scale) how.scale = 1.0 / 255;
  return how;
}

Result<Image> fitted(const Image& image, const Preprocess& how, Size declared) {
  Image fit = image;
  if (how.shorter) {
    const int64_t side = *how.shorter, least = std::min(fit.width, fit.height);
    fit =
        resized(fit, {std::max<int64_t>(fit.width * side / least, 1), std::max<int64_t>(fit.height * side / least, 1)});
  } else if (how.resize) {
    fit = resized(fit, *how.resize);
  } else if (!how.crop && declared.width > 0 && declared.height > 0) {
    fit = resized(fit, declared);
  }
  if (!how.crop) return fit;
  const Size crop = *how.crop;
  if (crop.width > fit.width || crop.height > fit.height)
    return misfit(
        fmt::format("{} by {} pixels cannot be cropped to {} by {}", fit.width, fit.height, crop.width, crop.height));
  // Halves are rounded to even, as Python does.
  const auto middle = [](int64_t all, int64_t part) {
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(all - part) / 2));
  };
  const int64_t left = middle(fit.width, crop.width), top = middle(fit.height, crop.height);
  Image cut{.width = crop.width, .height = crop.height, .channels = fit.channels, .samples = {}};
  for (int64_t y = 0; y < crop.height; ++y) {
    const auto begin = fit.samples.begin() + ((top + y) * fit.width + left) * fit.channels;
    cut.samples.insert(cut.samples.end(), begin, begin + crop.width * fit.channels);
  }
  return cut;
}

}  // namespace

Result<Tensor> imageTensor(const Image& image, const Preprocess& given, const ImageInput& input) {
  AGLOW_TRY(const Axes axes, axesOf(input));
  const auto dim = [&](int axis) { return input.dims[static_cast<size_t>(axis)]; };
  const Size declared{.width = dim(axes.width), .height = dim(axes.height)};
  const Preprocess how = withPreset(given, declared);
  const int64_t count = axes.channels < 0 ? 1 : dim(axes.channels);
  const Channels channels = how.channels.value_or(count == 1 ? Channels::Gray : Channels::Rgb);
  if ((channels == Channels::Gray) != (count == 1))
    return misfit(fmt::format("the input has {} channels, and the image is to have {}", count,
                              channels == Channels::Gray ? 1 : 3));
  AGLOW_TRY(Image fit, fitted(image, how, declared));
  if (channels == Channels::Gray) fit = grayscale(fit);
  for (const auto& list : {how.mean, how.deviation})
    if (list.size() > 1 && std::ssize(list) != count)
      return misfit(fmt::format("expected one number or {}, for each channel, got {}", count, list.size()));
  const auto numberOf = [](const std::vector<double>& list, int64_t c, double otherwise) {
    return list.empty() ? otherwise : list[list.size() == 1 ? 0 : static_cast<size_t>(c)];
  };
  const double scale = how.scale.value_or(isFloat(input.kind) ? 1.0 / 255 : 1.0);
  std::vector<int64_t> dims(input.dims.size(), 1), strides(input.dims.size(), 0);
  if (axes.channels >= 0) dims[static_cast<size_t>(axes.channels)] = count;
  dims[static_cast<size_t>(axes.height)] = fit.height;
  dims[static_cast<size_t>(axes.width)] = fit.width;
  for (int64_t i = std::ssize(dims), stride = 1; i-- > 0; stride *= dims[static_cast<size_t>(i)])
    strides[static_cast<size_t>(i)] = stride;
  AGLOW_TRY(const Shape shape, Shape::create(dims));
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  const auto stride = [&](int axis) { return axis < 0 ? 0 : strides[static_cast<size_t>(axis)]; };
  for (int64_t y = 0; y < fit.height; ++y)
    for (int64_t x = 0; x < fit.width; ++x)
      for (int64_t c = 0; c < count; ++c) {
        const double sample = fit.at(y, x, channels == Channels::Bgr ? 2 - c : c) * scale;
        values[static_cast<size_t>(y * stride(axes.height) + x * stride(axes.width) + c * stride(axes.channels))] =
            (sample - numberOf(how.mean, c, 0)) / numberOf(how.deviation, c, 1);
      }
  const Type type(input.kind, shape);
  if (isFloat(input.kind)) return Tensor::fromDoubles(type, values);
  std::vector<int64_t> whole;
  whole.reserve(values.size());
  for (const double value : values) whole.push_back(static_cast<int64_t>(std::nearbyint(value)));
  return Tensor::fromInts(type, whole);
}

Result<Image> tensorImage(const Tensor& tensor) {
  std::vector<int64_t> dims(tensor.type().shape().dims().begin(), tensor.type().shape().dims().end());
  while (dims.size() > 3 && dims.front() == 1) dims.erase(dims.begin());
  if (dims.size() == 2) dims.insert(dims.begin(), 1);
  if (dims.size() != 3)
    return misfit(fmt::format("{} is no image: expected sizes [H,W], [C,H,W] or [H,W,C]", tensor.type().text()));
  // Channels at the end, and not at the front, are those of pixels.
  const bool last = (dims[2] == 1 || dims[2] == 3 || dims[2] == 4) && dims[0] != 1 && dims[0] != 3;
  const int64_t channels = last ? dims[2] : dims[0], height = last ? dims[0] : dims[1],
                width = last ? dims[1] : dims[2];
  if (height < 1 || width < 1 || channels < 1) return misfit("an image without pixels");
  std::vector<double> values;
  if (isFloat(tensor.type().kind())) {
    values = tensor.doubles();
  } else {
    for (const int64_t value : tensor.toInts()) values.push_back(static_cast<double>(value));
  }
  const auto at = [&](int64_t c, int64_t y, int64_t x) {
    return values[static_cast<size_t>(last ? (y * width + x) * channels + c : (c * height + y) * width + x)];
  };
  Image image{.width = width, .height = height, .channels = channels == 1 || channels == 2 ? 1 : 3, .samples = {}};
  image.samples.resize(static_cast<size_t>(width * height * image.channels));
  if (channels > 4) {  // classes
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        int64_t best = 0;
        for (int64_t c = 1; c < channels; ++c)
          if (at(c, y, x) > at(best, y, x)) best = c;
        // The bits of the class, spread over the colours, the lowest as the brightest.
        for (int64_t bit = 0; bit < 24; ++bit)
          if ((best >> bit & 1) != 0)
            image.samples[static_cast<size_t>((y * width + x) * 3 + bit % 3)] |= static_cast<uint8_t>(0x80 >> bit / 3);
      }
    return image;
  }
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const bool centered = *least < -0.05 && *least >= -1.05 && *most <= 1.05;
  const double scale = centered ? 127.5 : *most <= 1.5 ? 255 : 1, offset = centered ? 127.5 : 0;
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < image.channels; ++c) {
        const double value = at(c, y, x) * scale + offset;
        image.samples[static_cast<size_t>((y * width + x) * image.channels + c)] =
            static_cast<uint8_t>(std::isnan(value) ? 0 : std::clamp(std::nearbyint(value), 0.0, 255.0));
      }
  return image;
}

}  // namespace aglow::media
