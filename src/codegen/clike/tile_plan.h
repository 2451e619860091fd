// How large the tiles of a product are, on devices whose groups share local memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "codegen/clike/launch.h"
#include "tensor/elem_kind.h"

namespace aglow::codegen {

struct ProductSizes {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  ElemKind held = ElemKind::Float32, sums = ElemKind::Float32;  // elements in tiles, and their products
  bool gathers = false;  // elements of the right matrix, or of both, are loaded one by one
  bool alongK = false;   // neighbours of the right matrix lie side by side along k
};

// Of a group: rows and columns of the result, and how far along k at once; rows and columns of one item, or, of halves,
// of the 32 items that multiply together; into how many parts sums are cut, which are added up in their order.
struct GroupTile {
  int64_t rows = 0, columns = 0, depth = 0;
  int64_t ownRows = 0, ownColumns = 0;
  int64_t parts = 1;
  int64_t stages = 2;  // of local memory: with one they compute while the others are filled

  bool halves = false;
  bool columnLines = false;  // of halves: lines of the right matrix in local memory are columns, which lie along k
  int64_t items() const { return rows / ownRows * (columns / ownColumns) * (halves ? 32 : 1); }
  // Along k, whole steps; and how many of those there are, which may be fewer than asked for.
  int64_t part(const ProductSizes& sizes) const;
  int64_t partCount(const ProductSizes& sizes) const;
  // Elements of local memory from one line of a tile to the next: of the left matrix, whose lines are rows where halves
  // are multiplied and columns elsewhere, and of the right one. A few more than it has, for the sake of banks.
  int64_t leftLength() const { return halves ? depth + 8 : rows + 4; }
  int64_t rightLength() const { return columnLines ? depth + 8 : columns + (halves ? 8 : 4); }
  int64_t rightElements() const { return rightLength() * (columnLines ? columns : depth); }
  int64_t leftElements() const { return leftLength() * (halves ? rows : depth); }  // of a stage
  int64_t stageBytes(ElemKind held) const;                                         // of both matrices
  int64_t stagedRows() const;               // of results that pass through local memory at once
  int64_t localBytes(ElemKind held) const;  // in all
};

// Whether products with these elements are done by units that multiply small matrices of halves.
bool multipliesHalves(const ProductSizes& sizes, const DeviceShape& shape);
// Whether items of a group share tiles of products with sums of a kind.
bool sharesTiles(ElemKind sums, const DeviceShape& shape);
// Whether values of a kind are several on the device, so that they are no vectors.
bool emulates(ElemKind kind, const DeviceShape& shape);
// Among the quickest by a model of the device: how many groups its units have to run, side by side as far as there is
// room; for each step along k the time to wait for memory, or the time to issue what all groups of a unit do, whichever
// is longer; what it costs to begin, to hand on results and to add up parts. The device's ways decide, and where there
// are none it is the quickest.
GroupTile chooseTile(const ProductSizes& sizes, const DeviceShape& shape, bool splits);
// How many results a product has along the axis that parts of it are cut along; of a part those of the whole, by which
// it is written, so that its sums are the same.
int64_t wholeOf(const Attrs& attrs, int64_t own);
// What a choice of tiles depends on, for Ways.
std::string question(const ProductSizes& sizes, std::string_view how);
// Bytes of working memory for the parts of sums.
int64_t partBytes(const ProductSizes& sizes, const GroupTile& tile);

}  // namespace aglow::codegen
