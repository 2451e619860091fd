// A training under way as a file: where it is, and all that it has changed.
#pragma once

#include <limits>
#include <map>
#include <string>

#include "support/file_set.h"
#include "tensor/tensor.h"

namespace aglow {

// How far a training has come. Whatever is random follows from these numbers and the seed.
struct TrainingPosition {
  uint64_t seed = 0;
  int64_t step = 0;         // since the training began
  int64_t epoch = 0;        // complete ones
  int64_t stepOfEpoch = 0;  // complete ones of this epoch
  int64_t firstEpoch = 0;   // with which this fit began
  int64_t firstStep = 0;
  double lossSum = 0;  // of this epoch, over samples
  int64_t lossSamples = 0;
  // What early stopping remembers.
  double best = std::numeric_limits<double>::infinity();
  int64_t bestEpoch = -1;
};

struct Checkpoint {
  std::string model;     // the hash of the model
  std::string settings;  // what it is trained with, in words
  TrainingPosition position;
  std::map<std::string, Tensor> state;
  std::map<std::string, Tensor> best;  // the variables of the best epoch; empty where nobody asked for them
};

// Whole and safe on the disk, or not at all: on a fault what was at the path is still there.
Status writeCheckpoint(const std::string& path, const Checkpoint& checkpoint);
// BadFile for what is no checkpoint, or damaged, or cut short.
Result<Checkpoint> readCheckpoint(const std::string& path);

}  // namespace aglow
