// Convolutions of channels by themselves (depthwise), on processors: an item copies rows of its channel into local
// memory, with the zeros around them, and walks over them in vectors. Of steps of s along a row, every s-th element
// lies side by side, so that a tap of neighbouring results is one load.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/clike/conv_planes.h"
#include "support/sizes.h"

namespace aglow::codegen {

namespace {

constexpr std::string_view kPlanes = R"(LOCAL_ARRAY float lines[$elements];
const $I plane = groupDown, first = groupAcross * $rows;
const $I end = first + $rows < $height ? first + $rows : $height, channel = plane % $channels;
const $I top = first * $stride - $before, from = plane / $outputs * $inputPlane;
for ($I i = 0; i < (end - 1 - first) * $stride + $reach; ++i) {
  const $I q = top + i;
  const int32_t to = (int32_t)i * $line;
  if (q < 0 || q >= $inputHeight) {
    for (int32_t j = 0; j < $line; ++j) lines[to + j] = 0;
    continue;
  }
  const $I at = from + q * $inputWidth;
$copies
}
$taps
for ($I row = first; row < end; ++row)
  for (int32_t side = 0; side < $width; side += $lanes) {
    const int32_t at = (int32_t)(row - first) * $rowStep + side;
    $V sum = ($V)(0);
$sums
    float found[$lanes];
    vstore$lanes(sum, 0, found);
    const int32_t count = $count;
    for (int32_t c = 0; c < count; ++c) {
      const $I point = (plane * $height + row) * $width + side + c;
      float given = found[c];
$store
    }
  }
)";

}  // namespace

std::optional<Launch> planeConv(KernelWriter& writer, const Sliding& sliding, const std::string& finish) {
  constexpr int64_t kMostTaps = 49, kMostBytes = 32 << 10, kMostLanes = 16;
  const Shape &x = writer.in(0).shape(), &y = writer.out().shape();
  const ElemKind kind = writer.kindOf(0);
  const Window& w = sliding.window;
  if (writer.shape().sharesLocal || !writer.shape().vectors || nest::computedKind(kind) != ElemKind::Float32 ||
      writer.in(1).dim(1) != 1 || y.rank() != 4 || w.kernel[0] * w.kernel[1] > kMostTaps)
    return std::nullopt;
  int64_t lanes = 1;
  while (lanes < std::min(y[3], kMostLanes)) lanes *= 2;
  const int64_t stride = w.strides[1], before = w.before[1];
  // Elements of a row at one remainder of their position by the stride; those of the next one follow.
  const int64_t part = alignUp(y[3], lanes) + (w.kernel[1] - 1) * w.dilations[1] / stride + 1;
  const int64_t line = part * stride, reach = (w.kernel[0] - 1) * w.dilations[0] + 1;
  const int64_t most = std::min(writer.shape().localBytes / 2, kMostBytes) / elemBytes(ElemKind::Float32) / line;
  if (most < reach) return std::nullopt;
  const int64_t blocks = ceilDiv(y[2], std::min((most - reach) / w.strides[0] + 1, y[2]));
  const int64_t rows = ceilDiv(y[2], blocks);

  std::string copies, taps, sums;
  for (int64_t r = 0; r < stride; ++r) {
    // Positions j * stride + r - before that lie inside.
    const int64_t low = std::clamp<int64_t>(ceilDiv(std::max<int64_t>(before - r, 0), stride), 0, part);
    const int64_t high =
        std::clamp<int64_t>(x[3] + before - r <= 0 ? 0 : ceilDiv(x[3] + before - r, stride), low, part);
    copies += fmt::format(
        R"(for (int32_t j = 0; j < {0}; ++j) lines[to + {3} + j] = 0;
for (int32_t j = {0}; j < {1}; ++j) lines[to + {3} + j] = {4};
for (int32_t j = {1}; j < {2}; ++j) lines[to + {3} + j] = 0;
)",
        low, high, part, r * part,
        elementText(kind, ElemKind::Float32, fmt::format("x[at + j * {} + ({})]", stride, r - before)));
  }
  for (int64_t i = 0; i < w.kernel[0]; ++i)
    for (int64_t j = 0; j < w.kernel[1]; ++j) {
      const int64_t tap = i * w.kernel[1] + j, across = j * w.dilations[1];
      taps += fmt::format("const float tap{} = {};\n", tap,
                          elementText(kind, ElemKind::Float32,
                                      fmt::format("filter[channel * {} + {}]", w.kernel[0] * w.kernel[1], tap)));
      sums += fmt::format("sum = MULADD_f32(vload{}(0, lines + at + {}), (float{})(tap{}), sum);\n", lanes,
                          i * w.dilations[0] * line + across % stride * part + across / stride, lanes, tap);
    }
  const std::string text =
      fill(kPlanes, {{"I", sliding.type},
                     {"V", fmt::format("float{}", lanes)},
                     {"lanes", lanes},
                     {"elements", ((rows - 1) * w.strides[0] + reach) * line},
                     {"rows", rows},
                     {"channels", y[1]},
                     {"outputs", y[1] / x[1]},
                     {"height", y[2]},
                     {"width", y[3]},
                     {"inputPlane", sliding.plane},
                     {"inputHeight", x[2]},
                     {"inputWidth", x[3]},
                     {"stride", w.strides[0]},
                     {"before", w.before[0]},
                     {"reach", reach},
                     {"line", line},
                     {"rowStep", w.strides[0] * line},
                     {"copies", copies},
                     {"taps", taps},
                     {"sums", sums},
                     {"count", y[3] % lanes == 0 ? fmt::format("{}", lanes)
                                                 : fmt::format("{0} - side < {1} ? {0} - side : {1}", y[3], lanes)},
                     {"store", finish + writer.resultIndices("point") + writer.epilogue()}});
  return writer.inGroups(text, blocks, y[0] * y[1], {1, 1});
}

}  // namespace aglow::codegen
