// What the kernel of rows by rows needs to know.
#pragma once

#include <stdint.h>

namespace aglow::cpu {

// Rows by the rows of one matrix, which are the columns of the result. Tiles have as many rows as the kernel's name
// says, or one less after the first `tall`. A unit is `unitTiles` of them by `unitColumns`; units of all columns come
// first.
struct RowsDesc {
  int64_t a, aRow;  // number of the left operand's address, and the distance of its rows
  int64_t depth, columns;
  int64_t span;  // so much of the depth is summed up in f32
  int64_t tiles, tall;
  int64_t unitTiles, unitColumns;
};

// Rows of the highest tile.
constexpr int64_t highestRows(int64_t lanes) { return lanes == 16 ? 6 : 3; }

}  // namespace aglow::cpu
