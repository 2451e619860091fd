// What a backend says of its vectors, for the layout phase to decide.
#pragma once

#include <cstdint>

namespace aglow {

struct VectorLayout {
  int64_t lanes = 0;        // f32 elements in a vector: channels of a block; two vectors make a panel of weights
  bool halves = false;      // products of bf16 exist
  bool fastHalves = false;  // and are faster than those of f32
  bool matrix = false;      // registers of matrices exist, for products of bf16 and of bytes
  bool whole = false;       // f16 with all channels side by side, in place of blocks of lanes
};

}  // namespace aglow
