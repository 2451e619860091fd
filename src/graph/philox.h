// Random numbers as functions of a counter (Philox2x32 with 10 rounds, Salmon et al. 2011), as nodes of integers: the
// same bits on every backend and for any number of threads.
#pragma once

#include "graph/builder.h"

namespace aglow {

// For each element of a shape a number from 0 up to, but without, 1: multiples of 2^-24, as f32. Other seeds, runs (a
// u64 scalar, of which the lower half counts) and places give numbers that have nothing in common. Fails for shapes of
// more than 2^32 elements.
Value uniformNumbers(Builder& b, const Shape& shape, uint64_t seed, Value run);

// The same on the host.
std::vector<double> uniformNumbers(int64_t count, uint64_t seed, uint64_t run);

}  // namespace aglow
