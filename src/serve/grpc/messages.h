// Inference over gRPC: protobuf messages to requests, and answers to messages. No part of gRPC itself.
#pragma once

#include <inference.pb.h>

#include "serve/elements.h"
#include "serve/inference.h"

namespace aglow::serve {

// Keeps protobuf from writing lines of its own about what clients send: faults are answered, and logs stay JSON.
void silenceProtobuf();

// Tensors of raw contents are read where they lie: the message lives on as long as one of them.
Result<InferRequest> fromMessage(std::shared_ptr<const inference::ModelInferRequest> message, const Limits& limits);
// All outputs as raw contents.
Status toMessage(const InferAnswer& answer, inference::ModelInferResponse& message);

}  // namespace aglow::serve
