// Tiles of one item each, in its registers.
#include "codegen/clike/tiles.h"

#include <fmt/format.h>

#include <algorithm>

namespace aglow::codegen {

namespace {

// Tiles of one item: rows of vectors in registers, for all rows of its part one tile after the other. The last ones
// begin early enough to be whole, and store what is their own.
constexpr std::string_view kOwnTiles =
    R"(const $I ownSide = ($I)ITEM(0) * $columns, side = ownSide + $columns <= $n ? ownSide : $n - $columns;
const $I batch = ($I)ITEM(1) / $parts, first = ($I)ITEM(1) % $parts * $part;
const $I end = first + $part < $m ? first + $part : $m;
$panel
for ($I ownTop = first; ownTop < end; ownTop += $rows) {
  const $I top = ownTop + $rows <= $m ? ownTop : $m - $rows;
  $V sums[$rows];
#pragma unroll
  for (int32_t r = 0; r < $rows; ++r) sums[r] = ($V)(0);
  for ($I k = 0; k < $k; ++k) {
$b
#pragma unroll
    for (int32_t r = 0; r < $rows; ++r) {
      const $I row = top + r;
      $T value = 0;
$left
      const $V wide = ($V)(($E)value);
      sums[r] = $muladd;
    }
  }
  for (int32_t r = 0; r < $rows; ++r) {
    const $I row = top + r;
    if (row < ownTop || row >= end) continue;
    $E line[$columns];
    vstore$columns(sums[r], 0, line);
    for (int32_t c = $own; c < $columns; ++c) {
      const $I column = side + c;
      const $I point = (batch * $m + row) * $n + column;
      $T given = ($T)line[c];
$store
    }
  }
}
)";

// One row of the right matrix, in the columns of a tile, as $name[0] to $name[$columns - 1].
constexpr std::string_view kRightRow = R"($atK
for (int32_t c = 0; c < $columns; ++c) {
  const $I column = side + c;
$kept
  $T value = 0;
$right
  $name = value;
}
)";

}  // namespace

// Where the right matrix is used for several tiles, its columns are laid side by side first.
Launch itemTiles(KernelWriter& writer, const Product& product, const std::string& store) {
  const ProductSizes& p = product.sizes;
  const ElemKind sums = p.sums;
  constexpr int64_t kRows = 8, kMostColumns = 16, kEnoughItems = 32;
  int64_t columns = 1;
  while (2 * columns <= std::min(p.n, kMostColumns)) columns *= 2;
  const int64_t rows = std::min(p.m, kRows), across = (p.n + columns - 1) / columns;
  int64_t part = (p.m + rows - 1) / rows * rows;
  while (part > rows && across * p.batch * ((p.m + part - 1) / part) < kEnoughItems)
    part = (part / 2 + rows - 1) / rows * rows;
  const int64_t parts = (p.m + part - 1) / part;
  const bool packs =
      part > rows && std::max<int64_t>(p.k, 1) * columns * elemBytes(sums) <= writer.shape().localBytes / 2;
  const std::string element = isFloat(sums) ? typeName(sums) : elemBytes(sums) == 4 ? "uint" : "ulong";
  const std::string vector = fmt::format("{}{}", element, columns);
  std::string starts, kept;
  for (const auto& [name, value] : product.ofColumn) {
    starts += fmt::format(
        "{0} {1}Of[{2}];\nfor (int32_t c = 0; c < {2}; ++c) {{ const {3} column = side + c; {1}Of[c] = {4}; }}\n",
        product.columnType, name, columns, writer.indexType(), value);
    kept += fmt::format("const {} {} = {}Of[c];\n", product.columnType, name, name);
  }
  const auto rightRow = [&](const std::string& name) {
    return fill(kRightRow, {{"T", typeName(sums)},
                            {"I", writer.indexType()},
                            {"columns", columns},
                            {"kept", kept},
                            {"atK", product.atK},
                            {"right", product.right.element(p)},
                            {"name", name}});
  };
  std::string panel = starts, b;
  if (packs) {
    panel += fmt::format("LOCAL {} packed[{}];\nfor ({} k = 0; k < {}; ++k) {{\n{}}}\n", element,
                         std::max<int64_t>(p.k, 1) * columns, writer.indexType(), p.k,
                         rightRow(fmt::format("packed[k * {} + c]", columns)));
    b = fmt::format("const {} b = vload{}(k, packed);", vector, columns);
  } else {
    b = fmt::format("{} rights[{}];\n{}const {} b = vload{}(0, rights);", element, columns, rightRow("rights[c]"),
                    vector, columns);
  }
  const std::string text = fill(
      kOwnTiles,
      {{"T", typeName(sums)},
       {"E", element},
       {"V", vector},
       {"I", writer.indexType()},
       {"m", p.m},
       {"n", p.n},
       {"k", p.k},
       {"rows", rows},
       {"columns", columns},
       {"part", part},
       {"parts", parts},
       {"own", p.n % columns == 0 ? "0" : "(int32_t)(ownSide - side)"},
       {"panel", panel},
       {"b", b},
       {"left", product.left.element(p)},
       {"muladd", isFloat(sums) ? fmt::format("MULADD_{}(wide, b, sums[r])", elemName(sums)) : "wide * b + sums[r]"},
       {"store", store}});
  return writer.finish(text, {across, p.batch * parts}, {1, 1});
}

}  // namespace aglow::codegen
