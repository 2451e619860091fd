// Tiles that the items of a group share in local memory.
#include "codegen/clike/tiles.h"

#include <fmt/format.h>

namespace aglow::codegen {

namespace {

// Tiles of a group: its items load them into local memory together, and each keeps 4 x 4 sums.
constexpr std::string_view kSharedTiles = R"(LOCAL $T left[16][65];
LOCAL $T right[16][65];
const int32_t across = (int32_t)LOCAL_ITEM(0), down = (int32_t)LOCAL_ITEM(1);
const $I batch = ($I)GROUP(1) / $tiles, top = ($I)GROUP(1) % $tiles * 64, side = ($I)GROUP(0) * 64;
$T sums[4][4];
for (int32_t r = 0; r < 4; ++r)
  for (int32_t c = 0; c < 4; ++c) sums[r][c] = 0;
for ($I first = 0; first < $k; first += 16) {
  for (int32_t e = down * 16 + across; e < 1024; e += 256) {
    {
      const $I row = top + e / 16, k = first + e % 16;
      $T value = 0;
      if (row < $m && k < $k) {
$left
      }
      left[e % 16][e / 16] = value;
    }
    {
      const $I k = first + e / 64, column = side + e % 64;
      $T value = 0;
      if (k < $k && column < $n) {
$ofColumn
$atK
$right
      }
      right[e / 64][e % 64] = value;
    }
  }
  BARRIER();
  for (int32_t k = 0; k < 16; ++k) {
    $T a[4], b[4];
    for (int32_t i = 0; i < 4; ++i) {
      a[i] = left[k][down + 16 * i];
      b[i] = right[k][across + 16 * i];
    }
    for (int32_t r = 0; r < 4; ++r)
      for (int32_t c = 0; c < 4; ++c) sums[r][c] = MULADD_$K(a[r], b[c], sums[r][c]);
  }
  BARRIER();
}
for (int32_t r = 0; r < 4; ++r)
  for (int32_t c = 0; c < 4; ++c) {
    const $I row = top + down + 16 * r, column = side + across + 16 * c;
    if (row >= $m || column >= $n) continue;
    const $I point = (batch * $m + row) * $n + column;
    $T given = sums[r][c];
$store
  }
)";

}  // namespace

Launch groupTiles(KernelWriter& writer, const Product& p, ElemKind sums, const std::string& store) {
  const int64_t down = (p.m + 63) / 64, across = (p.n + 63) / 64;
  std::string ofColumn;
  for (const auto& [name, value] : p.ofColumn)
    ofColumn += fmt::format("const {} {} = {};\n", p.columnType, name, value);
  const std::string text = fill(kSharedTiles, {{"T", typeName(sums)},
                                               {"K", std::string(elemName(sums))},
                                               {"I", writer.indexType()},
                                               {"m", p.m},
                                               {"n", p.n},
                                               {"k", p.k},
                                               {"tiles", down},
                                               {"left", p.left},
                                               {"ofColumn", ofColumn},
                                               {"atK", p.atK},
                                               {"right", p.right},
                                               {"store", store}});
  return writer.finish(text, {across * 16, p.batch * down * 16}, {16, 16});
}

}  // namespace aglow::codegen
