// Tiles of one item each, in its registers.
#include "codegen/clike/tiles.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/sizes.h"

namespace aglow::codegen {

namespace {

// Tiles of one item: rows of vectors in registers, for all rows of its part one tile after the other. The last ones
// begin early enough to be whole, and store what is their own.
constexpr std::string_view kOwnTiles =
    R"(const $I ownSide = tile % $across * $columns, side = ownSide + $columns <= $n ? ownSide : $n - $columns;
const $I batch = tile / $across / $parts, first = tile / $across % $parts * $part;
const $I end = first + $part < $m ? first + $part : $m;
$panel
for ($I ownTop = first; ownTop < end; ownTop += $rows) {
  const $I top = ownTop + $rows <= $m ? ownTop : $m - $rows;
  $sums
  for ($I k = 0; k < $k; ++k) {
$b
#pragma unroll
    for (int32_t r = 0; r < $rows; ++r) {
      const $I row = top + r;
      $T value = $zero;
$left
      $muladd
    }
  }
  for (int32_t r = 0; r < $rows; ++r) {
    const $I row = top + r;
    if (row < ownTop || row >= end) continue;
    $line
    for (int32_t c = $own; c < $columns; ++c) {
      const $I column = side + c;
      const $I point = (batch * $m + row) * $n + column;
      $T given = $given;
$store
    }
  }
}
)";

// What lanes of a tile are: vectors, or loops that a compiler turns into them.
struct Lanes {
  std::string element, sums, load, muladd, line;  // `load` makes `b` of the columns at `from`
};

Lanes vectorLanes(ElemKind sums, int64_t rows, int64_t columns) {
  const std::string element = vectorName(sums, 1), vector = fmt::format("{}{}", element, columns);
  return {.element = element,
          .sums = fmt::format("{0} sums[{1}];\n#pragma unroll\n  for (int32_t r = 0; r < {1}; ++r) sums[r] = ({0})(0);",
                              vector, rows),
          .load = fmt::format("const {} b = vload{}(0, from);", vector, columns),
          .muladd = fmt::format(
              "const {0} wide = ({0})(({1})value);\n      sums[r] = {2};", vector, element,
              isFloat(sums) ? fmt::format("MULADD_{}(wide, b, sums[r])", elemName(sums)) : "wide * b + sums[r]"),
          .line = fmt::format("{} line[{}];\n    vstore{}(sums[r], 0, line);", element, columns, columns)};
}

Lanes loopLanes(ElemKind sums, int64_t rows, int64_t columns) {
  const std::string element = isFloat(sums) ? typeName(sums) : elemBytes(sums) == 4 ? "uint32_t" : "uint64_t";
  const std::string each = fmt::format("for (int32_t c = 0; c < {}; ++c) ", columns);
  return {.element = element,
          .sums = fmt::format("{} sums[{}][{}] = {{{{0}}}};", element, rows, columns),
          .load = {},
          .muladd = sums == ElemKind::Float64 ? each + "sums[r][c] = add_f64(sums[r][c], mul_f64(value, from[c]));"
                                              : fmt::format("{}sums[r][c] += ({})value * from[c];", each, element),
          .line = fmt::format("const {}* line = sums[r];", element)};
}

// One row of the right matrix, in the columns of a tile, as $name[0] to $name[$columns - 1].
constexpr std::string_view kRightRow = R"($atK
for (int32_t c = 0; c < $columns; ++c) {
  const $I column = side + c;
$kept
  $T value = $zero;
$right
  $name = value;
}
)";

struct ItemTile {
  int64_t rows = 1, columns = 1;
};

// What an item does for all its tiles: multiplications of vectors, loads of the right matrix, numbers of the left one
// that become vectors, and sums that registers do not hold.
double costOf(const ItemTile& tile, const ProductSizes& s, const DeviceShape& shape) {
  const int64_t lanes = std::max<int64_t>(shape.vectorFloats * elemBytes(ElemKind::Float32) / elemBytes(s.sums), 1);
  const int64_t registers = lanes * elemBytes(s.sums) >= 64 ? 32 : 16;
  const int64_t across = ceilDiv(tile.columns, lanes), sums = tile.rows * across;
  const int64_t spilled = std::max<int64_t>(sums + across + 1 - registers, 0);
  const double step = static_cast<double>(sums + across + 2 * spilled) + 0.5 * static_cast<double>(tile.rows);
  return step * static_cast<double>(ceilDiv(s.m, tile.rows) * ceilDiv(s.n, tile.columns));
}

ItemTile chooseItemTile(const ProductSizes& sizes, const DeviceShape& shape) {
  // Of vectors that there are; items that run side by side have fewer registers each, and hide nothing once they spill.
  const int64_t mostColumns = shape.sharesLocal ? 4 : 16, mostRows = shape.sharesLocal ? 4 : 12;
  std::vector<std::pair<double, ItemTile>> found;
  for (int64_t columns = 1; columns <= std::min(sizes.n, mostColumns); columns *= 2)
    for (const int64_t rows : {1, 2, 4, 6, 8, 12})
      if (rows <= sizes.m && rows <= mostRows && 4 * columns > std::min(sizes.n, mostColumns)) {
        const ItemTile tile{.rows = rows, .columns = columns};
        found.emplace_back(costOf(tile, sizes, shape), tile);
      }
  return cheapestOr(shape.ways, question(sizes, "tiles of items"), std::move(found),
                    [](const ItemTile& t) { return fmt::format("{}x{}", t.rows, t.columns); });
}

}  // namespace

// Where the right matrix is used for several tiles, its columns are laid side by side first.
Launch itemTiles(KernelWriter& writer, const Product& product, const std::string& store) {
  const ProductSizes& p = product.sizes;
  const ElemKind sums = p.sums;
  // Items that run side by side want to be many, and have no local memory of their own.
  constexpr int64_t kEnoughItems = 32, kEnoughOfUnit = 1024;
  const bool together = writer.shape().sharesLocal;
  const int64_t enough = together ? writer.shape().computeUnits * kEnoughOfUnit : kEnoughItems;
  const auto [rows, columns] = chooseItemTile(p, writer.shape());
  const int64_t across = ceilDiv(p.n, columns);
  int64_t part = (p.m + rows - 1) / rows * rows;
  while (part > rows && across * p.batch * ((p.m + part - 1) / part) < enough)
    part = (part / 2 + rows - 1) / rows * rows;
  const int64_t parts = (p.m + part - 1) / part;
  const bool packs = !together && part > rows &&
                     std::max<int64_t>(p.k, 1) * columns * elemBytes(sums) <= writer.shape().localBytes / 2;
  const bool vectors = writer.shape().vectors && !emulates(sums, writer.shape());
  const Lanes lanes = vectors ? vectorLanes(sums, rows, columns) : loopLanes(sums, rows, columns);
  std::string starts, kept;
  for (const auto& [name, value] : product.right.ofLine) {
    starts += fmt::format(
        "{0} {1}Of[{2}];\nfor (int32_t c = 0; c < {2}; ++c) {{ const {3} column = side + c; {1}Of[c] = {4}; }}\n",
        product.right.lineType, name, columns, writer.indexType(), value);
    kept += fmt::format("const {} {} = {}Of[c];\n", product.right.lineType, name, name);
  }
  const auto rightRow = [&](const std::string& name) {
    return fill(kRightRow, {{"T", typeName(sums)},
                            {"zero", zeroText(sums)},
                            {"I", writer.indexType()},
                            {"columns", columns},
                            {"kept", kept},
                            {"atK", product.right.atK},
                            {"right", product.right.element(p)},
                            {"name", name}});
  };
  std::string panel = starts, b;
  if (packs) {
    panel += fmt::format("LOCAL_ARRAY {} packed[{}];\nfor ({} k = 0; k < {}; ++k) {{\n{}}}\n", lanes.element,
                         std::max<int64_t>(p.k, 1) * columns, writer.indexType(), p.k,
                         rightRow(fmt::format("packed[k * {} + c]", columns)));
    b = fmt::format("LOCAL const {}* from = packed + k * {};\n{}", lanes.element, columns, lanes.load);
  } else {
    b = fmt::format("{0} rights[{1}];\n{2}const {0}* from = rights;\n{3}", lanes.element, columns,
                    rightRow("rights[c]"), lanes.load);
  }
  const std::string text =
      fill(kOwnTiles, {{"T", typeName(sums)},
                       {"zero", zeroText(sums)},
                       {"given", isFloat(sums) ? "line[c]" : fmt::format("({})line[c]", typeName(sums))},
                       {"I", writer.indexType()},
                       {"m", p.m},
                       {"n", p.n},
                       {"k", p.k},
                       {"rows", rows},
                       {"columns", columns},
                       {"part", part},
                       {"parts", parts},
                       {"across", across},
                       {"own", p.n % columns == 0 ? "0" : "(int32_t)(ownSide - side)"},
                       {"panel", panel},
                       {"b", b},
                       {"left", product.left.element(p)},
                       {"sums", lanes.sums},
                       {"muladd", lanes.muladd},
                       {"line", lanes.line},
                       {"store", store}});
  const std::string number =
      fmt::format("const {0} tile = ({0}){1};\n", writer.indexType(), together ? "point" : "GROUP(0)");
  const int64_t count = across * p.batch * parts;
  return together ? writer.perPoint(count, number + text) : writer.finish(number + text, {count, 1}, {1, 1});
}

}  // namespace aglow::codegen
