// The domain com.microsoft.nchwc, in which onnxruntime saves models that it has optimized for one machine: tensors of
// four axes whose channels lie in blocks, as wide as that machine's vectors.
#pragma once

#include <string_view>

#include "import/onnx/proto.h"

namespace aglow::onnx {

inline constexpr std::string_view kNchwc = "com.microsoft.nchwc";

// How many channels a block has. Files do not say: it follows from how channels are filled up and which convolutions
// read plain tensors. Where nothing tells 8 from 16, it is what onnxruntime takes on the machine at hand.
int64_t channelBlock(const Model& model);

}  // namespace aglow::onnx
