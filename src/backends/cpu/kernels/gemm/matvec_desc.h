// What the kernels around products of matrices need to know besides the tiles.
#pragma once

#include <stdint.h>

namespace aglow::cpu {

// Few rows by a packed matrix. A unit is a run of matVecPanels(rows) panels.
struct MatVecDesc {
  int64_t depth, columns, vectors, panels;
  int64_t rows;
  int64_t span;   // so much of the depth is summed up in f32
  int64_t ahead;  // how many floats before their use weights are asked for; 0: left to the processor
};

// Few rows by a matrix of levels in blocks. A unit is a run of `unitPanels` panels, or a row whose blocks are
// summed up, or become bytes.
struct BlockDesc {
  int64_t depth, columns, vectors, panels;
  int64_t rows;
  int64_t words, groups;  // of a column; of four levels of a word
  int64_t block, blocks;  // rows of the matrix in a block; blocks of a column
  int64_t share;          // blocks with the same scale and offset
  int64_t scaleBlocks;    // scales of a column
  int64_t oneOffset;      // 1: all blocks have the same
  int64_t ahead;          // how many words before their use levels are asked for; 0: left to the processor
  int64_t unitPanels;
};
// Numbers of its addresses.
enum BlockAddress : int { kBlockA = 1, kBlockLevels, kBlockScales, kBlockOffsets, kBlockScratch };

// Panels that are read side by side, so that several streams come from memory at once.
constexpr int64_t matVecPanels(int64_t rows) { return rows == 1 ? 4 : 2; }
inline constexpr int64_t kMatVecRows = 4;

// Rows by one vector. A unit is `unitRows` rows of all matrices, which may have a vector each.
struct DotDesc {
  int64_t rows, depth;  // of all matrices; products
  int64_t perVector;    // rows that share a vector
  int64_t span;         // so much of the depth is summed up in f32
  int64_t unitRows;
};

// Rows of a matrix further apart, in scratch memory. A unit is `unitRows` rows.
struct SpreadDesc {
  int64_t from, to, toOffset;  // numbers of the addresses, offset in elements from the second
  int64_t rows, width, distance;
  int64_t unitRows;
};

// Rows of bytes, each with zeros up to `filled` of them, in scratch memory. A unit is `unitRows` rows.
struct FillDesc {
  int64_t rows, width, filled, distance;
  int64_t unitRows;
};

// Matrices [batches, depth, columns] into panels in scratch memory. A unit is a panel.
struct PackDesc {
  int64_t from, to;  // numbers of the addresses
  int64_t toOffset;  // in elements
  int64_t depth, columns, panels;
};

}  // namespace aglow::cpu
