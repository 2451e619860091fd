// What the kernels of recurrent layers need to know. Plans fill the descriptor, kernels read it.
#pragma once

#include <stdint.h>

namespace aglow::cpu {

enum RecurrentCell : int64_t { kCellRnn, kCellGru, kCellLstm };

// In the order of Activation::Kind.
enum RecurrentFunction : int64_t {
  kRelu,
  kTanh,
  kSigmoid,
  kAffine,
  kLeakyRelu,
  kThresholdedRelu,
  kScaledTanh,
  kHardSigmoid,
  kElu,
  kSoftsign,
  kSoftplus,
};

struct FunctionDesc {
  int64_t kind;
  uint32_t alpha, beta;  // bits of floats
};

inline constexpr int64_t kAbsent = -1;

// Weights are w [directions, gates * hidden, width] and r [directions, gates * hidden, hidden], as the record says.
struct RecurrentDesc {
  int64_t cell, steps, batch, width, hidden, gates;
  int64_t directions, reverse;  // reverse: the only direction runs from the last step to the first
  int64_t stateFirst;           // GRU: the reset gate is applied after the product (linear_before_reset)
  int64_t inputForget;          // LSTM
  int64_t clips;
  uint32_t clip, unused;  // bits of a float
  FunctionDesc functions[2][3];

  // Numbers of addresses, or kAbsent.
  int64_t y, lastH, lastC;
  int64_t x, w, r, bias, lengths, initialH, initialC, peepholes, scratch;
  int64_t longLengths;  // 1: i64, 0: i32

  // Floats from the beginning of the scratch memory: inputs times weights [directions, steps * batch, gates * hidden],
  // summed biases [directions, gates * hidden], the state times weights [directions, batch, gates * hidden], the states
  // before and after a step [2, directions, batch, hidden], the cell [directions, batch, hidden], and the state after
  // the reset gate.
  int64_t products, sums, fresh, h, c, seen;
  // Of sequences that end before the last step, the longest come first: their numbers [batch], how many each step has
  // [steps], how many all steps before it have [steps + 1], as i64, and their inputs, step after step. Inputs times
  // weights have the same rows, and all else that is in scratch memory has the same order.
  int64_t order, active, starts, packed;

  // The kernel of the inputs: a unit is `chunk` rows of one direction's w, and register tiles have `tile` rows.
  int64_t chunk, tile;
  // The kernel of the steps: a round is a step, or the first or second half of one (phases), and a unit of it `slice`
  // elements of the states of `rows` rows of the batch in one direction.
  int64_t phases, rows, slice;
};

}  // namespace aglow::cpu
