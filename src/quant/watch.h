// The first phase of quantization by profile: values of the optimized graph are watched while samples run.
#pragma once

#include "graph/builder.h"
#include "quant/profile.h"

namespace aglow::quant {

// A value that quantization asks a profile about; its name in profiles.
struct Watched {
  std::string name;
  Value value;
  int channelAxis = 0;                                 // -1 of a single number
  Placeholder *counts = nullptr, *channels = nullptr;  // state, where it is observed
  Placeholder* output = nullptr;                       // where it is an output
};

// As outputs, for those who want the values themselves.
std::vector<Watched> watchValues(Function& function);

// By instructions that add what each run tells to state of the program, so that no value outlives its readers and
// nothing is copied. Reads back what that state holds after some runs.
std::vector<Watched> observeValues(Function& function);
Watched observeValue(Builder& b, Watched value);
struct Observed {
  ValueProfile value;
  ChannelProfile channels;
};
Observed observed(const Tensor& counts, const Tensor& channels, int64_t runs);

}  // namespace aglow::quant
