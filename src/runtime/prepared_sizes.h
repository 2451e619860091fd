// Sizes of named dimensions that a network is compiled for ahead of time, and how values are made to fit them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "support/error.h"
#include "tensor/tensor.h"

namespace aglow {

// Of dimensions by their names.
using NamedSizes = std::map<std::string, int64_t>;

class PreparedSizes {
public:
  PreparedSizes() = default;
  // LimitReached where there are too many combinations.
  static Result<PreparedSizes> create(std::map<std::string, std::vector<int64_t>> sizes);

  bool empty() const { return sizes_.empty(); }
  // Every choice of one size for each dimension; one empty choice where nothing is prepared.
  const std::vector<NamedSizes>& combinations() const { return combinations_; }
  // For each dimension that has to grow, the next prepared size. One beyond the largest stays as it is.
  NamedSizes padded(const NamedSizes& sizes) const;

private:
  std::map<std::string, std::vector<int64_t>> sizes_;  // in order
  std::vector<NamedSizes> combinations_ = {{}};
};

// The tensor with other sizes of the axes that have a name there: cut, or filled up with zeros, at their ends. `names`
// are those of its axes, empty for axes without one.
Tensor withSizes(const Tensor& tensor, std::span<const std::string> names, const NamedSizes& sizes);

}  // namespace aglow
