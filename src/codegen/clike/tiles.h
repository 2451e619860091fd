// Products of matrices, which convolutions are too, by tiles.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/clike/kernel_writer.h"

namespace aglow::codegen {

// Matrices by matrices, `batch` of each: what the element of either one is (statements that set `value`, from batch,
// row and k, or batch, k and column), and what is added to a sum at last.
struct Product {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  std::string left, right;
  std::string finish = {};  // statements on `given`
  // What `right` uses: variables that follow from the column alone, with their type, and statements on k alone.
  std::vector<std::pair<std::string, std::string>> ofColumn = {};
  std::string columnType = {};
  std::string atK = {};
};

// The kernel of a product whose sums are of kind `sums`.
Launch tiles(KernelWriter& writer, const Product& p, ElemKind sums);
// The same with statements of the caller's that store the sum `given` under its number `point`.
Launch tiles(KernelWriter& writer, const Product& p, ElemKind sums, const std::string& store);

// How it is written; `store` are statements on the sum `given` of `row` and `column`, which has the number `point`.
// By groups whose items share tiles in local memory (GPUs).
Launch groupTiles(KernelWriter& writer, const Product& p, ElemKind sums, const std::string& store);
// By items that have tiles of their own (processors, which run the items of a group one after the other).
Launch itemTiles(KernelWriter& writer, const Product& p, ElemKind sums, const std::string& store);

}  // namespace aglow::codegen
