// What a backend says of its vectors, for the layout phase to decide.
#pragma once

#include <cstdint>

namespace aglow {

struct VectorLayout {
  int64_t lanes = 0;  // f32 elements in a vector: channels of a block; two vectors make a panel of weights
};

}  // namespace aglow
