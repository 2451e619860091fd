// Convolutions of few channels on processors: an item copies rows of a channel into local memory, with the zeros around
// them, and walks over them in vectors, for a few outputs at once. Of steps of s along a row, every s-th element lies
// side by side, so that a tap of neighbouring results is one load. Slices, which are channels and the first of three
// spatial axes, come one after the other; images with one axis have one row.
#include "codegen/clike/conv_planes.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/clike/tile_plan.h"
#include "support/sizes.h"

namespace aglow::codegen {

namespace {

constexpr std::string_view kPlanes = R"(LOCAL_ARRAY $E lines[$elements];
const $I number = groupDown, block = groupAcross / $pieces;
const $I image = number / ($parts * $deep), part = number / $deep % $parts, deep = number % $deep;
const $I first = block * $rows, end = first + $rows < $height ? first + $rows : $height;
const $I across = groupAcross % $pieces * $columns;
const $I beyond = across + $columns < $width ? across + $columns : $width;
const $I top = first * $stride - $before;
$zeros
for ($I slice = 0; slice < $slices; ++slice) {
  const $I plane = deep * $deepStride - $deepBefore + slice % $deepKernel * $deepDilation;
  if (plane < 0 || plane >= $inputDeep) continue;
  const $I from = ((image * $groups + part / $partsOfGroup) * $depth + slice / $deepKernel) * $inputVolume +
                  plane * $inputPlane;
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
  $E taps[$own * $taps];
$unroll
  for (int32_t o = 0; o < $own; ++o)
$unroll
    for (int32_t t = 0; t < $taps; ++t) taps[o * $taps + t] = ($E)$tap;
  for ($I row = first; row < end; ++row)
    for ($I side = across; side < beyond; side += $lanes) {
      const int32_t at = (int32_t)(row - first) * $rowStep + (int32_t)(side - across);
$sums
$then
    }
}
$last
)";

// What an item has of its results by the end of a slice, and how they are handed on.
constexpr std::string_view kHand = R"(for (int32_t o = 0; o < $own; ++o) {
  const $I channel = part * $own + o;
  const int32_t count = $count;
  for (int32_t c = 0; c < count; ++c) {
    const $I point = (((image * $parts * $own + channel) * $deep + deep) * $height + row) * $width + side + c;
    $T given = ($T)found[o * $lanes + c];
$store
  }
}
)";
constexpr std::string_view kZeros = R"(LOCAL_ARRAY $E held[$own * $rows * $padded];
for (int32_t i = 0; i < $own * $rows * $padded; ++i) held[i] = 0;
)";
constexpr std::string_view kLast = R"(for ($I row = first; row < end; ++row)
  for ($I side = across; side < beyond; side += $lanes) {
    $E found[$own * $lanes];
    for (int32_t o = 0; o < $own; ++o)
      for (int32_t c = 0; c < $lanes; ++c)
        found[o * $lanes + c] = held[(o * $rows + (int32_t)(row - first)) * $padded + (int32_t)(side - across) + c];
$hand
  }
)";

// Of the positions of a row that have the remainder $r by the stride: zeros before the input, elements, zeros behind.
constexpr std::string_view kCopies = R"({
  const $I base = across * $step + ($r - $ahead);
  $I low = base < 0 ? ($step - 1 - base) / $step : 0, high = base < $inputWidth ? ($inputWidth - base + $step - 1) / $step : 0;
  low = low < $part ? low : $part;
  high = high < low ? low : high < $part ? high : $part;
  for ($I j = 0; j < low; ++j) lines[to + $r * $part + j] = 0;
  for ($I j = low; j < high; ++j) lines[to + $r * $part + j] = ($E)$element;
  for ($I j = high; j < $part; ++j) lines[to + $r * $part + j] = 0;
}
)";

}  // namespace

std::vector<Word> sizeWords(const Sliding& sliding, const Shape& y) {
  const auto [deep, down, along] = sliding.axes(y);
  return {{"deep", deep.result},           {"height", down.result},
          {"width", along.result},         {"deepStride", deep.stride},
          {"deepBefore", deep.before},     {"deepKernel", deep.kernel},
          {"deepDilation", deep.dilation}, {"inputDeep", deep.input},
          {"inputVolume", sliding.plane},  {"inputPlane", down.input * along.input},
          {"inputHeight", down.input},     {"inputWidth", along.input},
          {"stride", down.stride},         {"before", down.before},
          {"step", along.stride},          {"ahead", along.before}};
}

std::optional<Launch> planeConv(KernelWriter& writer, const Sliding& sliding, const std::string& finish) {
  constexpr int64_t kMostBytes = 32 << 10, kMostLanes = 16, kFewTaps = 49, kMostSteps = 16;
  const Shape &x = writer.in(0).shape(), &y = writer.out().shape();
  const ElemKind kind = writer.kindOf(0), sums = nest::computedKind(kind);
  const DeviceShape& shape = writer.shape();
  const int64_t depth = writer.in(1).dim(1), groups = writer.attrs().integer("group"), outputs = y[1] / groups;
  if (shape.sharesLocal || !shape.vectors || emulates(sums, shape) || sliding.input.empty() ||
      sliding.input.size() > Sliding::kAxes || x.elements() == 0)
    return std::nullopt;
  const auto [deep, down, along] = sliding.axes(y);
  int64_t own = std::min<int64_t>(outputs, 4);
  while (outputs % own != 0) --own;
  const int64_t slices = depth * deep.kernel, taps = down.kernel * along.kernel, parts = y[1] / own;
  // Results of one slice, which is always inside of the input, are stored as they are found.
  const bool direct = slices == 1 && deep.before == 0 && (deep.result - 1) * deep.stride < deep.input;
  // The more taps an element of the input has, the more often tiles would gather it (measured: with 1 tap up to 8
  // outputs are quicker here, with 9 some 40, with 49 all).
  if (outputs > 4 * (taps * deep.kernel + 1)) return std::nullopt;
  int64_t lanes = 1;
  while (lanes < std::min(along.result, kMostLanes * 4 / elemBytes(sums))) lanes *= 2;

  // Rows and columns of an item: as many as local memory has room for besides taps, but for enough items.
  const int64_t room = std::min(shape.localBytes / 2, kMostBytes) / elemBytes(sums) - own * taps;
  if (along.stride > kMostSteps || std::max({down.stride, down.reach(), along.reach()}) > room) return std::nullopt;
  const int64_t enough = std::max<int64_t>(32, 2 * shape.computeUnits);
  const auto partOf = [&](int64_t columns) {  // of a row, at one remainder by the stride; those of the next one follow
    return alignUp(columns, lanes) + (along.kernel - 1) * along.dilation / along.stride + 1;
  };
  const auto needed = [&](int64_t rows, int64_t columns) {
    return ((rows - 1) * down.stride + down.reach()) * partOf(columns) * along.stride +
           (direct ? 0 : own * rows * alignUp(columns, lanes));
  };
  int64_t columns = along.result, rows = down.result;
  while (columns > lanes && needed(1, columns) > room) columns = alignUp(ceilDiv(columns, 2), lanes);
  if (needed(1, columns) > room) return std::nullopt;
  const int64_t pieces = ceilDiv(along.result, columns), planes = y[0] * parts * deep.result * pieces;
  while (rows > 1 && (needed(rows, columns) > room ||
                      (rows > 2 * down.reach() / down.stride && planes * ceilDiv(down.result, rows) < enough)))
    rows = ceilDiv(rows, 2);
  const int64_t part = partOf(columns), line = part * along.stride, padded = alignUp(columns, lanes);

  const std::string element = vectorName(sums, 1), vector = vectorName(sums, lanes);
  std::vector<Word> words = sizeWords(sliding, y);
  words.insert(words.end(), {{"I", sliding.type},
                             {"E", element},
                             {"T", typeName(sums)},
                             {"V", vector},
                             {"lanes", lanes},
                             {"own", own},
                             {"taps", taps},
                             {"part", part},
                             {"parts", parts},
                             {"partsOfGroup", outputs / own},
                             {"groups", groups},
                             {"depth", depth},
                             {"slices", slices},
                             {"rows", rows},
                             {"columns", columns},
                             {"padded", padded},
                             {"pieces", pieces},
                             {"elements", ((rows - 1) * down.stride + down.reach()) * line},
                             {"reach", down.reach()},
                             {"line", line},
                             {"rowStep", down.stride * line},
                             {"store", finish + writer.resultIndices("point") + writer.epilogue()}});
  const auto with = [&](std::string_view text, std::vector<Word> more = {}) {
    more.insert(more.end(), words.begin(), words.end());
    return fill(text, more);
  };
  const bool few = own * taps <= kFewTaps;
  std::string copies;
  for (int64_t r = 0; r < along.stride; ++r)
    copies += with(
        kCopies, {{"r", r}, {"element", elementText(kind, sums, fmt::format("x[at + base + j * {}]", along.stride))}});
  std::string steps;
  for (int64_t o = 0; o < own; ++o)
    steps += fmt::format("{} sum{} = {};\n", vector, o,
                         direct ? fmt::format("({})(0)", vector)
                                : fmt::format("vload{}(0, held + ({} + (int32_t)(row - first)) * {} + (int32_t)(side "
                                              "- across))",
                                              lanes, o * rows, padded));
  // A tap, whose numbers are known or variables.
  const auto addTap = [&](const std::string& at, const std::string& number) {
    steps += fmt::format("{{\nconst {} b = vload{}(0, lines + at + {});\n", vector, lanes, at);
    for (int64_t o = 0; o < own; ++o) {
      const std::string tap = fmt::format("({})(taps[{} + {}])", vector, o * taps, number);
      steps += isFloat(sums) ? fmt::format("sum{0} = MULADD_{1}(b, {2}, sum{0});\n", o, elemName(sums), tap)
                             : fmt::format("sum{0} = b * {1} + sum{0};\n", o, tap);
    }
    steps += "}\n";
  };
  const int64_t lineDown = down.dilation * line;
  if (few) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t across = tap % along.kernel * along.dilation;
      addTap(std::to_string(tap / along.kernel * lineDown + across % along.stride * part + across / along.stride),
             std::to_string(tap));
    }
  } else {
    steps +=
        fmt::format("for (int32_t i = 0; i < {}; ++i)\nfor (int32_t j = 0; j < {}; ++j)\n", down.kernel, along.kernel);
    addTap(fmt::format("i * {0} + j * {1} % {2} * {3} + j * {1} / {2}", lineDown, along.dilation, along.stride, part),
           fmt::format("i * {} + j", along.kernel));
  }
  std::string then;
  if (direct) {
    then = fmt::format("{} found[{}];\n", element, own * lanes);
    for (int64_t o = 0; o < own; ++o) then += fmt::format("vstore{}(sum{}, 0, found + {});\n", lanes, o, o * lanes);
  } else {
    for (int64_t o = 0; o < own; ++o)
      then += fmt::format("vstore{}(sum{}, 0, held + ({} + (int32_t)(row - first)) * {} + (int32_t)(side - across));\n",
                          lanes, o, o * rows, padded);
  }
  const std::string hand = with(
      kHand, {{"count", along.result % lanes == 0
                            ? fmt::format("{}", lanes)
                            : fmt::format("(int32_t)({0} - side < {1} ? {0} - side : {1})", along.result, lanes)}});
  const std::string text = with(
      kPlanes, {{"unroll", few ? "#pragma unroll" : ""},
                {"zeros", direct ? "" : with(kZeros)},
                {"copies", copies},
                {"tap", elementText(kind, sums,
                                    fmt::format("filter[((part * {} + o) * {} + slice) * {} + t]", own, slices, taps))},
                {"sums", steps},
                {"then", direct ? then + hand : then},
                {"last", direct ? "" : with(kLast, {{"hand", hand}})}});
  return writer.inGroups(text, ceilDiv(down.result, rows) * pieces, y[0] * parts * deep.result, {1, 1});
}

}  // namespace aglow::codegen
