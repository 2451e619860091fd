// Convolutions of few outputs by groups whose items share local memory: a group brings a part of a channel there, with
// the zeros around it, and each item has a few rows of one column, for which it keeps the sums in registers. Slices,
// which are channels and the first of three spatial axes, come one after the other.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/clike/conv_planes.h"
#include "codegen/clike/tile_plan.h"
#include "support/sizes.h"

namespace aglow::codegen {

namespace {

constexpr std::string_view kPlanes = R"(LOCAL_ARRAY $E lines[$elements], taps[$own * $taps];
const int32_t item = (int32_t)LOCAL_ITEM(0);
const $I number = ($I)GROUP(0) / ($blocks * $pieces), block = ($I)GROUP(0) / $pieces % $blocks;
const $I image = number / ($groups * $deep), part = number / $deep % $groups, deep = number % $deep;
const $I across = ($I)GROUP(0) % $pieces * $columns, column = across + item % $columns;
const $I first = block * $rows, top = first + item / $columns * $ownRows;
const $I firstLine = first * $stride - $before, side = across * $step - $ahead;
const int32_t at = item / $columns * $ownRows * $stride * $line + item % $columns * $step;
$E sums[$own][$ownRows];
#pragma unroll
for (int32_t o = 0; o < $own; ++o)
#pragma unroll
  for (int32_t r = 0; r < $ownRows; ++r) sums[o][r] = 0;
for ($I slice = 0; slice < $slices; ++slice) {
  const $I plane = deep * $deepStride - $deepBefore + slice % $deepKernel * $deepDilation;
  if (plane < 0 || plane >= $inputDeep) continue;
  const $I from = ((image * $groups + part) * $depth + slice / $deepKernel) * $inputVolume + plane * $inputPlane;
  BARRIER();
  for (int32_t e = item; e < $elements; e += $items) {
    const $I p = firstLine + e / $line, q = side + e % $line;
    $E value = 0;
    if (p >= 0 && p < $inputHeight && q >= 0 && q < $inputWidth) value = ($E)$element;
    lines[e] = value;
  }
  for (int32_t e = item; e < $own * $taps; e += $items) taps[e] = ($E)$tap;
  BARRIER();
$acrossUnroll
  for (int32_t j = 0; j < $wide; ++j)
$downUnroll
    for (int32_t i = 0; i < $tall; ++i)
#pragma unroll
      for (int32_t r = 0; r < $ownRows; ++r) {
        const $E value = lines[at + (i * $dilation + r * $stride) * $line + j * $dilationAcross];
#pragma unroll
        for (int32_t o = 0; o < $own; ++o) sums[o][r] = $sum;
      }
}
if (column >= $width) return;
#pragma unroll
for (int32_t r = 0; r < $ownRows; ++r) {
  const $I row = top + r;
  if (row >= $height) return;
#pragma unroll
  for (int32_t o = 0; o < $own; ++o) {
    const $I channel = part * $own + o;
    const $I point = (((image * $groups * $own + channel) * $deep + deep) * $height + row) * $width + column;
    $T given = ($T)sums[o][r];
$store
  }
}
)";

// Of a group.
struct Part {
  int64_t columns = 1, tall = 1;  // items side by side, and below each other
  int64_t ownRows = 1;            // of an item
  int64_t rows() const { return tall * ownRows; }
  int64_t items() const { return columns * tall; }
};

}  // namespace

std::optional<Launch> groupPlaneConv(KernelWriter& writer, const Sliding& sliding, const std::string& finish) {
  constexpr int64_t kOwnRows = 4, kItems = 256, kLeastItems = 32, kUnrolled = 16, kParts = 3;
  const Shape &x = writer.in(0).shape(), &y = writer.out().shape();
  const ElemKind kind = writer.kindOf(0), sums = nest::computedKind(kind);
  const DeviceShape& shape = writer.shape();
  if (!sharesTiles(sums, shape) || sliding.input.empty() || sliding.input.size() > Sliding::kAxes || x.elements() == 0)
    return std::nullopt;
  const std::array axes = sliding.axes(y);
  const auto &deep = axes[0], &down = axes[1], &along = axes[2];
  const int64_t depth = writer.in(1).dim(1), groups = writer.attrs().integer("group"), own = y[1] / groups;
  const int64_t taps = down.kernel * along.kernel, slices = depth * deep.kernel;
  // Several groups have room on a unit.
  const int64_t room = shape.localBytes / kParts / elemBytes(sums) - own * taps;
  if (taps == 1 || std::max({down.stride, along.stride, down.reach(), along.reach()}) > room) return std::nullopt;
  Part p{.ownRows = std::min(kOwnRows, down.result)};
  const int64_t mostTall = ceilDiv(down.result, p.ownRows), widest = std::max<int64_t>(kItems / mostTall, 32);
  p.columns = ceilDiv(along.result, ceilDiv(along.result, std::min(widest, kItems)));
  p.tall = std::min(mostTall, std::max<int64_t>(kItems / p.columns, 1));
  const int64_t line = (p.columns - 1) * along.stride + along.reach();
  const auto elements = [&] { return ((p.rows() - 1) * down.stride + down.reach()) * line; };
  const int64_t planes = y[0] * groups * deep.result;
  const auto parts = [&] { return planes * ceilDiv(down.result, p.rows()) * ceilDiv(along.result, p.columns); };
  while (p.tall > 1 && p.columns * ceilDiv(p.tall, 2) >= kLeastItems &&
         (elements() > room || parts() < 2 * shape.computeUnits))
    p.tall = ceilDiv(p.tall, 2);
  if (elements() > room || p.items() < kLeastItems) return std::nullopt;

  const std::string value = elementText(kind, sums, fmt::format("x[from + p * {} + q]", along.input));
  const std::string tap = elementText(
      kind, sums, fmt::format("filter[((part * {0} + e / {1}) * {2} + slice) * {1} + e % {1}]", own, taps, slices));
  const std::string met = fmt::format("taps[o * {} + i * {} + j]", taps, along.kernel);
  std::vector<Word> words = sizeWords(sliding, y);
  words.insert(words.end(),
               {{"I", sliding.type},
                {"E", vectorName(sums, 1)},
                {"T", typeName(sums)},
                {"own", own},
                {"taps", taps},
                {"elements", elements()},
                {"items", p.items()},
                {"blocks", ceilDiv(down.result, p.rows())},
                {"pieces", ceilDiv(along.result, p.columns)},
                {"rows", p.rows()},
                {"columns", p.columns},
                {"ownRows", p.ownRows},
                {"line", line},
                {"groups", groups},
                {"depth", depth},
                {"slices", slices},
                {"dilation", down.dilation},
                {"tall", down.kernel},
                {"dilationAcross", along.dilation},
                {"wide", along.kernel},
                {"element", value},
                {"tap", tap},
                {"acrossUnroll", taps <= kUnrolled ? "#pragma unroll" : ""},
                {"downUnroll", down.kernel <= kUnrolled ? "#pragma unroll" : ""},
                {"sum", isFloat(sums) ? fmt::format("MULADD_{}(value, {}, sums[o][r])", elemName(sums), met)
                                      : fmt::format("value * {} + sums[o][r]", met)},
                {"store", finish + writer.resultIndices("point") + writer.epilogue()}});
  return writer.finish(fill(kPlanes, words), {parts() * p.items(), 1}, {p.items(), 1});
}

}  // namespace aglow::codegen
