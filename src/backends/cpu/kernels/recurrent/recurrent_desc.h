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
  // summed biases [directions, gates * hidden], the state times weights [directions, batch, gates * hidden], the state
  // and the cell [directions, batch, hidden], and the state after the reset gate.
  int64_t products, sums, fresh, h, c, seen;

  // A unit of the first step is `chunk` rows of one direction's w; a unit of the second is all steps of one direction
  // for `rows` rows of the batch. Register tiles of the first have `tile` rows.
  int64_t chunk, tile, rows;
};

}  // namespace aglow::cpu
