// Samples: rows of arrays. An epoch visits each once, in an order that follows from the seed and the epoch's number.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "train/training_module.h"

namespace aglow {

struct Dataset {
  std::map<std::string, Tensor> inputs;  // by the model's names; samples along the first axis
  Tensor target;                         // the same

  int64_t samples() const { return target.empty() || target.type().rank() == 0 ? 0 : target.type().dim(0); }
};

// Arrays that fit the module's placeholders, by their names. Labels of any integers become i64, floats of any kind what
// the output has. BadBinding says which array, or which label of which sample, does not fit.
struct CheckedData {
  std::map<std::string, Tensor> arrays;  // by placeholder
  int64_t samples = 0;
};
Result<CheckedData> checkData(const Dataset& data, const TrainingModule& module);

// Which samples come when: all of them in order, or shuffled.
std::vector<int64_t> orderOf(int64_t samples, bool shuffle, uint64_t seed, int64_t epoch);

// Rows of an array, one after the other, into a tensor with as many rows at least, which is filled up with them again.
void gatherRows(const Tensor& array, std::span<const int64_t> rows, Tensor& into);

}  // namespace aglow
