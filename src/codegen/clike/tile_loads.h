// How the items of a group bring the parts of two matrices that they need next into local memory.
#pragma once

#include <string>

#include "codegen/clike/tiles.h"

namespace aglow::codegen {

// One matrix. Items hold what comes next in registers while they compute with what is there.
class TileLoad {
public:
  TileLoad(const KernelWriter& writer, const Product& p, const GroupTile& tile, bool left);

  // Statements: the registers, and what follows from columns alone; the part from `first` on into registers; those into
  // local memory, the half number `at`.
  std::string declarations() const;
  std::string fetch() const;
  std::string put() const;

private:
  int64_t perItem() const;
  // What an item moves in step i: from which line of the tile on, and from how far along k.
  std::string places() const;
  std::string condition() const;
  std::string putHalves() const;

  const KernelWriter& writer_;
  const Product& p_;
  GroupTile tile_;
  const Side& side_;
  bool left_;
  std::string name_, line_, vector_;
  int64_t lines_, all_;        // of the tile, of the matrix
  int64_t lanes_ = 1;          // of one load
  int64_t loads_ = 1;          // one after the other along k
  int64_t columnsOfItem_ = 0;  // for which variables are kept
};

}  // namespace aglow::codegen
