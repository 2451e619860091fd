// Operators on batches of images: orders of axes, padding, resampling, shuffling.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "import/caffe2/op_tables.h"
#include "import/caffe2/window.h"
#include "support/sizes.h"

namespace aglow::caffe2 {

namespace {

Value images(Value x) {
  if (x.rank() != 4) fail(Code::BadNode, fmt::format("expected a batch of images, got {}", x.type().text()));
  return x;
}

void toChannelsLast(OpImport& c) {
  const Value x = c.in(0);
  if (x.rank() < 2) fail(Code::BadNode, fmt::format("expected a batch of images, got {}", x.type().text()));
  std::vector<int64_t> perm = range(2, x.rank());
  perm.insert(perm.begin(), 0);
  perm.push_back(1);
  c.out(c.b.transposed(x, perm));
}

void toChannelsFirst(OpImport& c) {
  const Value x = c.in(0);
  if (x.rank() < 2) fail(Code::BadNode, fmt::format("expected a batch of images, got {}", x.type().text()));
  std::vector<int64_t> perm = range(1, x.rank() - 1);
  perm.insert(perm.begin(), {0, x.rank() - 1});
  c.out(c.b.transposed(x, perm));
}

// The channels of each group, dealt out in turn.
void channelShuffle(OpImport& c) {
  const Value x = channelsFirst(c, c.in(0));
  const int64_t group = intArg(c, "group", 1);
  if (group < 1 || x.dim(1) % group != 0)
    fail(Code::BadNode, fmt::format("expected 'group' to divide the channels of {}, got {}", x.type().text(), group));
  const int64_t rest = product(x.shape(), 2, x.rank());
  const Value dealt = c.b.transposed(c.b.reshaped(x, {x.dim(0), group, x.dim(1) / group, rest}), {0, 2, 1, 3});
  Imported result = c.operand(0);
  result.tensor = orderedAsSaid(c, c.b.reshaped(dealt, x.shape().dims()));
  c.out(0, result);
}

// Pads may be negative, which cuts.
void padImage(OpImport& c) {
  const Value x = images(channelsFirst(c, c.in(0)));
  const std::string mode = wordArg(c, "mode", "constant");
  const std::vector<int64_t> pads = padList(c, 2);
  const std::vector<int64_t> before{0, 0, pads[0], pads[1]}, after{0, 0, pads[2], pads[3]};
  if (mode == "constant")
    return c.out(
        orderedAsSaid(c, onnx::paddedOrCropped(c.b, x, before, after, c.b.scalarLike(x, realArg(c, "value", 0)))));
  if (mode != "reflect" && mode != "edge")
    fail(Code::BadNode, fmt::format("expected 'mode' constant, reflect or edge, got '{}'", mode));
  Value y = x;
  for (int axis = 2; axis < 4; ++axis) {
    const int64_t extent = x.dim(axis), front = before[static_cast<size_t>(axis)],
                  back = after[static_cast<size_t>(axis)];
    if (extent == 0 || std::abs(front) > extent || std::abs(back) > extent)
      fail(Code::BadNode, fmt::format("expected pads of at most the extent along axis {} of {}, got {} and {}", axis,
                                      x.type().text(), front, back));
    std::vector<int64_t> sources;
    for (int64_t at = -front; at < extent + back; ++at) {
      const int64_t mirrored = std::min(std::abs(at), 2 * extent - std::abs(at) - 2);
      sources.push_back(std::clamp<int64_t>(mode == "edge" ? at : mirrored, 0, extent - 1));
    }
    y = c.b.gather(y, c.b.ints(sources), {.axis = axis});
  }
  c.out(orderedAsSaid(c, y));
}

// Height and width after scaling, with the scales themselves.
struct Scaling {
  int64_t height, width;
  double heightScale, widthScale;
};

Scaling scalingOf(OpImport& c, Value x) {
  Scaling s{0, 0, realArg(c, "height_scale", 1), realArg(c, "width_scale", 1)};
  if (c.has(1)) {
    const std::vector<double> scales = c.constant(1).doubles();
    if (scales.size() != 2) fail(Code::BadNode, fmt::format("expected two scales, got {}", scales.size()));
    s.heightScale = scales[0];
    s.widthScale = scales[1];
  }
  // As Caffe2 multiplies them: in f32, cut to a whole number.
  const auto scaled = [&](int64_t extent, double scale) {
    const float size = static_cast<float>(extent) * static_cast<float>(scale);
    if (!(size >= 0 && size < static_cast<float>(std::numeric_limits<int32_t>::max())))
      fail(Code::BadNode, fmt::format("expected positive scales, got {}", scale));
    return static_cast<int64_t>(size);
  };
  s.height = scaled(x.dim(2), s.heightScale);
  s.width = scaled(x.dim(3), s.widthScale);
  return s;
}

void resizeNearest(OpImport& c) {
  const Value x = images(channelsFirst(c, c.in(0)));
  const Scaling s = scalingOf(c, x);
  Value y = x;
  const auto pick = [&](int axis, int64_t size, double scale) {
    if (x.dim(axis) == 0) fail(Code::BadNode, fmt::format("expected pixels, got {}", x.type().text()));
    std::vector<int64_t> sources;
    for (int64_t i = 0; i < size; ++i)
      sources.push_back(
          std::min(static_cast<int64_t>(static_cast<float>(i) / static_cast<float>(scale)), x.dim(axis) - 1));
    y = c.b.gather(y, c.b.ints(sources), {.axis = axis});
  };
  pick(2, s.height, s.heightScale);
  pick(3, s.width, s.widthScale);
  Imported result = c.operand(0);
  result.tensor = orderedAsSaid(c, y);
  c.out(0, result);
}

// The corners of both images are the same points.
void upsampleBilinear(OpImport& c) {
  const Value x = images(channelsFirst(c, c.in(0)));
  const Scaling s = scalingOf(c, x);
  const auto ratio = [](int64_t size, int64_t extent) {
    return static_cast<double>(size) / static_cast<double>(std::max<int64_t>(extent, 1));
  };
  c.out(orderedAsSaid(c, c.b.resize(x, {.sizes = {x.dim(0), x.dim(1), s.height, s.width},
                                        .scales = {1, 1, ratio(s.height, x.dim(2)), ratio(s.width, x.dim(3))},
                                        .mode = "linear",
                                        .coordinates = "align_corners"})));
}

constexpr int64_t kMostBlock = 1 << 15;

// Blocks of pixels become items of the batch.
void spaceToBatch(OpImport& c) {
  const Value x = images(c.in(0));
  const int64_t block = intArg(c, "block_size", 2);
  const std::vector<int64_t> pads = padList(c, 2);
  if (block < 1 || block > kMostBlock) fail(Code::BadNode, fmt::format("expected a 'block_size', got {}", block));
  const Value padded =
      onnx::paddedOrCropped(c.b, x, {0, 0, pads[0], pads[1]}, {0, 0, pads[2], pads[3]}, c.b.scalarLike(x, 0));
  const int64_t height = padded.dim(2), width = padded.dim(3);
  if (height % block != 0 || width % block != 0)
    fail(Code::BadNode, fmt::format("expected 'block_size' {} to divide the padded {}", block, padded.type().text()));
  const Value blocks = c.b.reshaped(padded, {x.dim(0), x.dim(1), height / block, block, width / block, block});
  c.out(c.b.reshaped(c.b.transposed(blocks, {3, 5, 0, 1, 2, 4}),
                     {block * block * x.dim(0), x.dim(1), height / block, width / block}));
}

void batchToSpace(OpImport& c) {
  const Value x = images(c.in(0));
  const int64_t block = intArg(c, "block_size", 2);
  const std::vector<int64_t> pads = padList(c, 2);
  if (block < 1 || block > kMostBlock || x.dim(0) % (block * block) != 0)
    fail(Code::BadNode,
         fmt::format("expected a 'block_size' whose square divides the batch of {}, got {}", x.type().text(), block));
  const int64_t batch = x.dim(0) / (block * block), height = x.dim(2), width = x.dim(3);
  const Value blocks = c.b.reshaped(x, {block, block, batch, x.dim(1), height, width});
  const Value whole = c.b.reshaped(c.b.transposed(blocks, {2, 3, 4, 0, 5, 1}),
                                   shapeOf({batch, x.dim(1), height * block, width * block}).dims());
  c.out(
      onnx::paddedOrCropped(c.b, whole, {0, 0, -pads[0], -pads[1]}, {0, 0, -pads[2], -pads[3]}, c.b.scalarLike(x, 0)));
}

// Half of the channels, each gated by one of the other half.
void glu(OpImport& c) {
  const Value x = c.in(0);
  const int64_t axis = c.axis(intArg(c, "dim", -1), x.rank()), extent = x.dim(static_cast<int>(axis));
  if (extent % 2 != 0)
    fail(Code::BadNode, fmt::format("expected an even extent along axis {}, got {}", axis, x.type().text()));
  c.out(c.b.mul(sliced(c.b, x, axis, 0, extent / 2), c.b.sigmoid(sliced(c.b, x, axis, extent / 2, extent / 2))));
}

}  // namespace

std::span<const OpRow> imageRows() {
  static constexpr OpRow rows[] = {
      row("NCHW2NHWC", toChannelsLast),
      row("NHWC2NCHW", toChannelsFirst),
      row("ChannelShuffle", channelShuffle),
      row("Int8ChannelShuffle", channelShuffle),
      row("PadImage", padImage),
      row("ResizeNearest", resizeNearest),
      row("Int8ResizeNearest", resizeNearest),
      row("UpsampleBilinear", upsampleBilinear),
      row("SpaceToBatch", spaceToBatch),
      row("BatchToSpace", batchToSpace),
      row("Glu", glu),
  };
  return rows;
}

}  // namespace aglow::caffe2
