// Products of matrices, which convolutions are too, by tiles.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/clike/kernel_writer.h"
#include "codegen/clike/tile_plan.h"

namespace aglow::codegen {

// One of the two matrices of a product: where the element of batch, row and k, or batch, k and column, lies.
struct Side {
  std::string pointer, number;
  ElemKind kind = ElemKind::Float32;
  int64_t offset = 0;  // of bytes: the one that is zero
  // Statements that `number` needs, and whether there is such an element; what lies outside is 0, and has a number too.
  std::string before = {}, inside = {};
  // Whether neighbours lie side by side along k, or along rows and columns, and how many of them are a whole vector
  // from every multiple of that number on.
  bool alongK = false;
  int64_t whole = 1;
  // Variables that follow from the row or column alone, with their type, and statements on k alone that `before` uses.
  std::vector<std::pair<std::string, std::string>> ofLine = {};
  std::string lineType = {};
  std::string atK = {};

  // The element, as the kind of tiles or of sums (or of those in a register: `stored`); and statements that set `value`
  // to it, without a branch.
  std::string loaded(const ProductSizes& sizes) const;
  std::string loaded(const ProductSizes& sizes, const std::string& stored) const;
  std::string element(const ProductSizes& sizes) const;
};

// Matrices by matrices, `batch` of each, and what is added to a sum at last.
struct Product {
  ProductSizes sizes;
  Side left, right;
  std::string finish = {};  // statements on `given`
  // The number of the result of batch, row and column as an expression (empty: they are numbered in that order), its
  // indices as statements, and whether four columns from a multiple of four on have neighbouring results.
  std::string point = {}, indices = {};
  bool inFours = false;
};

// What is done with a sum `given` of batch, row and column, which has the number `point`; or with four neighbours at
// once: `found`, from firstColumn and firstPoint on.
struct Handed {
  std::string one, four = {};
};

// The kernels of a product, whose results are the instruction's, with the tiles of the whole that it is a part of.
std::vector<Launch> tiles(KernelWriter& writer, const Product& p, const ProductSizes& whole);
// How it is written. By items that have tiles of their own: processors, which run the items of a group one after the
// other, and kinds that are several values on a device; `store` are statements on a sum.
Launch itemTiles(KernelWriter& writer, const Product& p, const std::string& store);
// By groups whose items share tiles in local memory (GPUs); `hand` is called for the writer of the kernel that has the
// whole sums.
std::vector<Launch> groupTiles(KernelWriter& writer, const Product& p, const GroupTile& tile,
                               const std::function<Handed(KernelWriter&)>& hand);

}  // namespace aglow::codegen
