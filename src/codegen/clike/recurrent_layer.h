// A recurrent layer as kernels for devices see it: its sizes, what an instruction needs of working memory, and what
// one step makes of sums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/clike/kernel_writer.h"
#include "ops/all_ops.h"
#include "ops/recurrent.h"

namespace aglow::codegen {

struct RecurrentSizes {
  Op cell;
  int64_t steps, batch, width, hidden, gates, directions;
  bool reverse, halves;  // halves: steps are two, as a gate is multiplied with what another let through

  RecurrentSizes(const Attrs& attrs, const Type& x, const Type& r);
  int64_t columns() const { return gates * hidden; }
  int64_t phases() const { return halves ? 2 : 1; }
};

// How the steps are shared out. An item, or a group, has so many rows of the batch in one direction, and so many
// elements of their states: all of them, and then it goes from step to step by itself, or a part, and then each step is
// a kernel.
struct RecurrentForm {
  bool shared = false, stepwise = false;
  int64_t lanes = 1;  // of vectors
  int64_t rows = 1, slice = 1;
  int64_t across = 1, parts = 1;  // of a shared group: items along the state, and along what is multiplied with it

  int64_t items() const { return across * parts; }
  int64_t padded(const RecurrentSizes& s) const;  // elements of a state, whole vectors
  // Of neighbours whose weights lie side by side: an item reads all of its own in their order.
  int64_t block(const RecurrentSizes& s) const { return shared ? padded(s) : lanes; }
  int64_t blocks(const RecurrentSizes& s) const;
  int64_t slices(const RecurrentSizes& s) const;
  int64_t localBytes(const RecurrentSizes& s) const;
};

constexpr int64_t kMostFloats = int64_t{1} << 30;  // of working memory, all of which 32 bits number

// The quickest by a model of the device, or what its ways say, of those that local and working memory have room for;
// none where `lanes` is 0.
RecurrentForm chooseForm(const RecurrentSizes& sizes, const DeviceShape& shape);

// Where everything lies in the working memory, as numbers of floats from its beginning.
struct RecurrentPlaces {
  RecurrentPlaces(const RecurrentSizes& s, const RecurrentForm& f);

  int64_t counters = 0;  // of steps, for kernels that are one each
  int64_t weights = 0;   // of states [directions, padded / block, hidden, gates, block]
  int64_t products = 0;  // of inputs, with biases [directions, steps, batch, gates, padded]
  int64_t states = 0;    // before and after a step, which change places [2, directions, rows, padded]
  int64_t cells = 0, seen = 0, updates = 0;  // [directions, rows, padded]
  int64_t peepholes = 0;                     // [directions, 3, padded]
  int64_t late = 0;                          // biases that pass the reset gate [directions, padded]
  int64_t floats = 0;
  int64_t paddedRows = 0;
};

// Where a step finds the states before and after it, and those that passed the reset gate: addresses of the element `j`
// of the row number `r` of the item or group.
struct StateAddresses {
  std::string before, after, seen;
};

// Statements on sum0, sum1, ... of the element `j` of `row`, which is the number `r` of the item or group, for the step
// number `index` of `direction`, which is `step` of the sequence. For writers that have the working memory as `work`.
std::string cellText(KernelWriter& writer, const RecurrentSizes& s, const RecurrentForm& f, const RecurrentPlaces& at,
                     const StateAddresses& addresses, int64_t phase);

}  // namespace aglow::codegen
