// Requests and answers of inference as JSON, with tensors in it or, by the binary extension, behind it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "serve/elements.h"
#include "serve/inference.h"

namespace aglow::serve {

// The reader of JSON looks at this many bytes behind a text; what they are does not matter.
inline constexpr size_t kBytesBehind = 64;

// The body of a request: JSON of `jsonSize` bytes, then the binary tensors in the order of the inputs that have one.
// kBytesBehind bytes more may be read. `owner` keeps the bytes alive for as long as a tensor of the request lives.
// Model and version are the address's business.
Result<InferRequest> decodeRequest(std::span<const std::byte> body, size_t jsonSize,
                                   const std::shared_ptr<const void>& owner, const Limits& limits);

struct EncodedAnswer {
  std::string json;
  std::vector<Blob> blobs;  // behind it
};
// An answer with numbers that JSON has no word for (NaN, infinities) is refused, unless they go as bytes.
Result<EncodedAnswer> encodeAnswer(const InferAnswer& answer);

// A text as a string of JSON, in quotes. Bytes that are no UTF-8 are replaced.
std::string jsonString(std::string_view text);
// {"error": "…"}
std::string errorJson(std::string_view text);

}  // namespace aglow::serve
