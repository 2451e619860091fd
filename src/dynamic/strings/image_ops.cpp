// ImageDecoder: the bytes of a file become the pixels of an image.
#include <fmt/format.h>

#include "dynamic/strings/string_ops.h"
#include "graph/builder.h"
#include "media/image.h"
#include "support/quote.h"

namespace aglow::strings {

namespace {

Values decode(const Call& call) {
  const bool there = !call.operands.empty() && call.operands.front().isTensor();
  const Tensor* bytes = there ? &call.operands.front().tensor() : nullptr;
  if (bytes == nullptr || bytes->type().kind() != ElemKind::UInt8 || bytes->type().rank() != 1)
    fail(Code::BadNode, fmt::format("expected the bytes of a file, u8 of rank 1, got {}",
                                    there ? bytes->type().text() : "something else"));
  const std::string format = call.word("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale")
    fail(Code::BadNode, fmt::format("expected 'pixel_format' RGB, BGR or Grayscale, got {}", quoted(format)));
  media::Image image = orFail(media::decodeImage({bytes->data(), static_cast<size_t>(bytes->bytes())}));
  if (format == "Grayscale") image = media::grayscale(image);
  if (format == "BGR")
    for (size_t i = 0; i < image.samples.size(); i += 3) std::swap(image.samples[i], image.samples[i + 2]);
  Tensor pixels(Type(ElemKind::UInt8, Shape{image.height, image.width, image.channels}));
  std::copy(image.samples.begin(), image.samples.end(), reinterpret_cast<uint8_t*>(pixels.mutableData()));
  return {ModelValue::of(std::move(pixels))};
}

}  // namespace

std::span<const HandlerRow> imageHandlers() {
  static constexpr HandlerRow rows[] = {{"ImageDecoder", decode}};
  return rows;
}

}  // namespace aglow::strings
