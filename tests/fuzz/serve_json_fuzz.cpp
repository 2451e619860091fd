// Any bytes, read as the body of a request: a request whose tensors fit, or a refusal in words. The first two bytes say
// how much of it is JSON.
#include <cstdlib>
#include <memory>

#include "serve/json_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aglow;
  if (size < 2) return 0;
  const size_t json = std::min<size_t>(data[0] * 256U + data[1], size - 2);
  const auto kept = std::make_shared<std::string>(reinterpret_cast<const char*>(data) + 2, size - 2);
  kept->append(serve::kBytesBehind, '\0');
  const auto body = std::as_bytes(std::span(*kept)).first(size - 2);
  const auto request = serve::decodeRequest(body, json, kept, {.tensor = 1 << 20});
  if (!request.ok()) {
    if (request.error().message.empty() || serve::statusOf(request.error().code).http < 400) std::abort();
    return 0;
  }
  serve::InferAnswer answer{.model = "m", .version = "1", .id = request->id};
  for (const auto& [name, value] : request->inputs) {
    answer.outputs.push_back({name, value, false});
    answer.outputs.push_back({name, value, true});
  }
  const auto encoded = serve::encodeAnswer(answer);
  if (encoded.ok() && encoded->blobs.size() != request->inputs.size()) std::abort();
  return 0;
}
