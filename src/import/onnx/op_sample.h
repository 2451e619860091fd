// Sampling of tensors at places between their elements, as image operators do.
#pragma once

#include <vector>

#include "graph/builder.h"

namespace aglow::onnx {

// An element along one axis that contributes to a sample.
struct Tap {
  Value index;   // i64, inside of the axis
  Value weight;  // of x's (wide) kind; empty: 1
};

// The two neighbours of a place along an axis, weighted by their distance; those outside of the axis weigh nothing.
std::vector<Tap> linearTaps(Builder& b, Value place, int64_t extent);
// A tap at floor + shift for each weight. Those outside of the axis weigh nothing, unless they are `held` at its ends.
std::vector<Tap> neighbourTaps(Builder& b, Value floor, int64_t shift, const std::vector<Value>& weights,
                               int64_t extent, bool held);

// [batch, channel, spatial...] as rows of channels, one for each place.
Value rowsOf(Builder& b, Value x);

// Sums of weighted rows: for every combination of one tap an axis, the row `base` + the taps' places. All indices and
// weights broadcast; the result has their shape, followed by the rows' width.
Value sampledRows(Builder& b, Value rows, Value base, const std::vector<std::vector<Tap>>& axes,
                  const std::vector<int64_t>& extents);
// The same, one value for each combination, so that they can be combined in another way than by a sum.
std::vector<Value> sampledParts(Builder& b, Value rows, Value base, const std::vector<std::vector<Tap>>& axes,
                                const std::vector<int64_t>& extents);

}  // namespace aglow::onnx
