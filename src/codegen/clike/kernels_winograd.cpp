// Winograd's method on planar images: every tile of the input is transformed, at every point of the transform the
// tiles' channels are multiplied by the filter's, and what comes out is transformed back and handed on.
#include <fmt/format.h>

#include "codegen/clike/sliding.h"
#include "codegen/clike/tiles.h"
#include "ops/winograd.h"
#include "support/sizes.h"

namespace aglow::codegen {

namespace {

struct Sizes {
  int64_t tile, side, points;                      // of results, of the input, elements of the latter
  int64_t channels, outputs, down, across, tiles;  // the last: of all images

  Sizes(const Attrs& attrs, const Type& filter, const Type& y)
      : tile(attrs.integer("tile")),
        side(tile + 2),
        points(side * side),
        channels(filter.dim(2)),
        outputs(filter.dim(3)),
        down(ceilDiv(y.dim(2), tile)),
        across(ceilDiv(y.dim(3), tile)),
        tiles(y.dim(0) * down * across) {}

  // The working memory: transformed tiles [point, channel, tile], then products [point, output, tile].
  int64_t inputs() const { return points * channels * tiles; }
  int64_t products() const { return points * outputs * tiles; }
};

// The sum of elements of a line, each times its number; `element` has {} for their number.
template <size_t kColumns>
std::string lineSum(const double (&row)[kColumns], std::string_view element) {
  std::string text;
  for (size_t k = 0; k < kColumns; ++k) {
    if (row[k] == 0) continue;
    const std::string name = fmt::format(fmt::runtime(element), k);
    const double size = std::abs(row[k]);
    text += row[k] < 0 ? " - " : text.empty() ? "" : " + ";
    text += size == 1 ? name : fmt::format("{}.0f * {}", size, name);
  }
  return text;
}

// Statements that make `to` [rows][rows] = m from m', with `half` between; `store` writes element {row, column}.
template <size_t kRows, size_t kColumns, class Store>
std::string transform(const double (&m)[kRows][kColumns], const Store& store) {
  std::string text = fmt::format("float half_[{}][{}];\n#pragma unroll\nfor (int32_t j = 0; j < {}; ++j) {{\n", kRows,
                                 kColumns, kColumns);
  for (size_t r = 0; r < kRows; ++r) text += fmt::format("half_[{}][j] = {};\n", r, lineSum(m[r], "from[{}][j]"));
  text += fmt::format("}}\n#pragma unroll\nfor (int32_t i = 0; i < {}; ++i) {{\n", kRows);
  for (size_t c = 0; c < kRows; ++c) text += store(c, lineSum(m[c], "half_[i][{}]"));
  return text + "}\n";
}

template <int kTile>
Launch inputTiles(KernelWriter& writer, const Sizes& s) {
  const Shape& x = writer.in(0).shape();
  const Sliding sliding(writer.attrs(), {3, 3}, x, writer.indexType());
  writer.input(0, "x");
  writer.scratch("v", ElemKind::Float32);
  const auto store = [&](size_t c, const std::string& value) {
    return fmt::format("v[(({0})(i * {1} + {2}) * {3} + channel) * {4} + tile] = {5};\n", "int64_t", s.side, c,
                       s.channels, s.tiles, value);
  };
  return writer.perPoint(s.channels * s.tiles,
                         fill(R"(const $I tile = point % $tiles, channel = point / $tiles;
const $I image = tile / $inImage, top = tile % $inImage / $across * $tile - $above, left = tile % $across * $tile - $before;
const $I plane = (image * $channels + channel) * $plane;
float from[$side][$side];
#pragma unroll
for (int32_t i = 0; i < $side; ++i)
#pragma unroll
  for (int32_t j = 0; j < $side; ++j) {
    const $I q0 = top + i, q1 = left + j;
    const bool inside = $inside;
    const float value = x[inside ? plane + q0 * $width + q1 : 0];
    from[i][j] = inside ? value : 0;
  }
$transform)",
                              {{"I", sliding.type},
                               {"tiles", s.tiles},
                               {"inImage", s.down * s.across},
                               {"across", s.across},
                               {"tile", s.tile},
                               {"above", sliding.window.before[0]},
                               {"before", sliding.window.before[1]},
                               {"channels", s.channels},
                               {"plane", sliding.plane},
                               {"side", s.side},
                               {"inside", sliding.inside(0) + " && " + sliding.inside(1)},
                               {"width", x[3]},
                               {"transform", transform(winograd::Transform<kTile>::kInput, store)}}));
}

template <int kTile>
Launch outputTiles(KernelWriter& writer, const Sizes& s) {
  const Shape& y = writer.out().shape();
  writer.scratch("v", ElemKind::Float32);
  const auto store = [&](size_t c, const std::string& value) { return fmt::format("to[i][{}] = {};\n", c, value); };
  const std::string back = transform(winograd::Transform<kTile>::kOutput, store);
  return writer.perPoint(s.outputs * s.tiles, fill(R"(const $I atTile = point % $tiles, channel = point / $tiles;
float from[$side][$side], to[$tile][$tile];
#pragma unroll
for (int32_t i = 0; i < $side; ++i)
#pragma unroll
  for (int32_t j = 0; j < $side; ++j)
    from[i][j] = v[INT64_C($offset) + ((int64_t)(i * $side + j) * $outputs + channel) * $tiles + atTile];
$back
const $I image = atTile / $inImage, top = atTile % $inImage / $across * $tile, left = atTile % $across * $tile;
for (int32_t i = 0; i < $tile; ++i)
  for (int32_t j = 0; j < $tile; ++j) {
    if (top + i >= $height || left + j >= $width) continue;
    const $I point = ((image * $outputs + channel) * $height + top + i) * $width + left + j;
    float given = to[i][j];
$store
  }
)",
                                                   {{"I", writer.indexType()},
                                                    {"tiles", s.tiles},
                                                    {"inImage", s.down * s.across},
                                                    {"across", s.across},
                                                    {"tile", s.tile},
                                                    {"side", s.side},
                                                    {"offset", s.inputs()},
                                                    {"outputs", s.outputs},
                                                    {"back", back},
                                                    {"height", y[2]},
                                                    {"width", y[3]},
                                                    {"store", writer.resultIndices("point") + writer.epilogue()}}));
}

Launch products(KernelWriter& writer, const Sizes& s) {
  writer.input(1, "filter");
  writer.scratch("v", ElemKind::Float32);
  Product p{.sizes = {.batch = s.points, .m = s.outputs, .n = s.tiles, .k = s.channels}};
  const auto side = [&](const char* name, int64_t line, const char* along, int64_t whole) {
    const std::string first = fmt::format("((int64_t)batch * {} + k) * {} + {}", s.channels, line, along);
    return Side{.pointer = name, .number = first, .whole = whole};
  };
  p.left = side("filter", s.outputs, "row", writer.together(1, s.outputs));
  p.right = side("v", s.tiles, "column", s.tiles % 4 == 0 ? 4 : 1);
  const std::string one = fmt::format("v[INT64_C({}) + point] = given;\n", s.inputs());
  if (!sharesTiles(p.sizes.sums, writer.shape())) return itemTiles(writer, p, one);
  const Handed handed{.one = one,
                      .four = s.tiles % 4 == 0
                                  ? fmt::format("*(GLOBAL float4*)(v + INT64_C({}) + firstPoint) = all;", s.inputs())
                                  : ""};
  const GroupTile tile = chooseTile(p.sizes, writer.shape(), false);
  return groupTiles(writer, p, tile, [&](KernelWriter&) { return handed; }).front();
}

template <int kTile>
std::vector<Launch> steps(const Program& program, const Instr& instr, const DeviceShape& shape, const Sizes& s) {
  KernelWriter in(program, instr, shape), middle(program, instr, shape), out(program, instr, shape);
  return {inputTiles<kTile>(in, s), products(middle, s), outputTiles<kTile>(out, s)};
}

Sizes sizesOf(const Program& program, const Instr& anchor) {
  return {anchor.attrs, program[anchor.inputs()[1].region].type, program[anchor.results()[0].region].type};
}

}  // namespace

Decision takesWinograd(const Attrs&, const OperandTypes& types, const DeviceShape&) {
  if (types.in[0]->rank() != 4 || types.in[0]->kind() != ElemKind::Float32)
    return Decision::no(fmt::format("needs planar images of f32, has {}", types.in[0]->text()));
  return Decision::yes();
}

int64_t winogradScratch(const Program& program, const Instr& anchor, const DeviceShape& /*shape*/) {
  const Sizes s = sizesOf(program, anchor);
  return (s.inputs() + s.products()) * elemBytes(ElemKind::Float32);
}

std::vector<Launch> winogradLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  const Sizes s = sizesOf(program, bodyOf(instr).front());
  return s.tile == 2 ? steps<2>(program, instr, shape, s) : steps<4>(program, instr, shape, s);
}

}  // namespace aglow::codegen
