// Heads of attention: how they lie in a tensor, and the rotation that gives them their positions.
#pragma once

#include "graph/builder.h"

namespace aglow::onnx {

// [batch, length, heads * width] as [batch, heads, length, width]; BadNode when the width does not divide.
Value splitHeads(Builder& b, Value x, int64_t heads);
// The way back.
Value joinHeads(Builder& b, Value x);

// Pairs of elements along the last axis turned by angles whose cosines and sines broadcast to half of that axis. Pairs
// are neighbours (interleaved), or lie one half apart.
Value rotatedPairs(Builder& b, Value x, Value cosine, Value sine, bool interleaved);

}  // namespace aglow::onnx
