// How the items of a group bring the parts of two matrices that they need next into local memory.
#pragma once

#include <string>

#include "codegen/clike/tiles.h"

namespace aglow::codegen {

// One matrix. What comes next is copied ahead to local memory where elements are stored as tiles hold them and the
// device copies by itself; elsewhere items hold it in registers while they compute with what is there.
class TileLoad {
public:
  TileLoad(const KernelWriter& writer, const Product& p, const GroupTile& tile, bool left);

  // Statements: the registers, and what follows from rows or columns alone; the part from `first` on into registers;
  // those into stage `at` of local memory; the part from `first` on into stage `at`, some time.
  std::string declarations() const;
  std::string fetch() const;
  std::string put() const;
  std::string copy() const;

private:
  int64_t perItem() const;
  // What an item moves in step i: from which line of the tile on, and from how far along k.
  std::string places() const;
  // A statement that sets `value` to the vector there.
  std::string loadedVector() const;
  // The same in the matrix, with what follows from the line, and whether there is such a place: `there`.
  std::string matrixPlaces() const;
  // In local memory, `on` further along k.
  std::string place(int64_t on = 0) const;
  // Whether lines of local memory are those of the matrix; else they lie along k.
  bool keepsLines() const { return tile_.halves && (left_ || tile_.columnLines); }
  int64_t kLanes() const {
    return tile_.depth / (side_.alongK ? lanes_ : 1);
  }  // loads from one end of a tile to the other

  const KernelWriter& writer_;
  const Product& p_;
  GroupTile tile_;
  const Side& side_;
  bool left_, ahead_;
  std::string name_, line_, vector_;
  int64_t lines_, all_;      // of the tile, of the matrix
  int64_t lanes_ = 1;        // of one load
  int64_t linesOfItem_ = 0;  // for which variables are kept
};

}  // namespace aglow::codegen
