// Any bytes, read as a message of gRPC: no message, a refusal in words, or a request whose tensors go back as they
// came.
#include <cstdlib>
#include <memory>

#include "serve/grpc/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aglow;
  [[maybe_unused]] static const bool quiet = (serve::silenceProtobuf(), true);
  auto message = std::make_shared<inference::ModelInferRequest>();
  if (!message->ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto request = serve::fromMessage(message, {.tensor = 1 << 20});
  if (!request.ok()) {
    if (request.error().message.empty() || serve::statusOf(request.error().code).grpc == 0) std::abort();
    return 0;
  }
  serve::InferAnswer answer{.model = request->model, .version = request->version, .id = request->id};
  for (const auto& [name, value] : request->inputs) answer.outputs.push_back({name, value});
  inference::ModelInferResponse response;
  if (!serve::toMessage(answer, response).ok() || response.outputs_size() != static_cast<int>(answer.outputs.size()))
    std::abort();
  return 0;
}
