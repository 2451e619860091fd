// Requests joined row by row into one run, and its outputs shared out again.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/parts.h"

namespace aglow {

// How many rows the values have: the first extent, which all tensors share. BadBinding where they do not, or where a
// value is no tensor.
Result<int64_t> rowsOf(const Values& values);
// Equal for requests that can be joined: names, kinds and all extents but the first.
std::string rowKeyOf(const Values& values);

// The rows of all requests, in order, and zeros up to `rows`.
Values joinRows(std::span<const Values* const> requests, int64_t rows);
// A request's own rows of the outputs. Internal where an output has other rows than the run.
Outputs takeRows(const std::vector<ModelValue>& outputs, int64_t first, int64_t count, int64_t all);

}  // namespace aglow
