#include "serve/elements.h"

#include <fmt/format.h>

#include <cstring>

#include "serve/datatype.h"
#include "serve/inference.h"
#include "support/quote.h"

namespace aglow::serve {

namespace {

// The length before each string, little-endian as all numbers of the protocol are.
constexpr size_t kLengthBytes = 4;
static_assert(std::endian::native == std::endian::little);

Result<ModelValue> stringsFrom(const Shape& shape, std::span<const std::byte> bytes) {
  // Each string has at least its length: no more memory is used than the bytes that came stand for.
  if (shape.elements() > std::ssize(bytes) / static_cast<int64_t>(kLengthBytes))
    return badRequest(fmt::format("{} bytes are too few for {} strings", bytes.size(), shape.elements()));
  std::vector<std::string> strings;
  strings.reserve(static_cast<size_t>(shape.elements()));
  for (int64_t i = 0; i < shape.elements(); ++i) {
    uint32_t length = 0;
    if (bytes.size() < kLengthBytes) return badRequest(fmt::format("string {} has no length", i));
    std::memcpy(&length, bytes.data(), kLengthBytes);
    bytes = bytes.subspan(kLengthBytes);
    if (length > bytes.size())
      return badRequest(fmt::format("string {} should have {} bytes, and {} are left", i, length, bytes.size()));
    strings.emplace_back(reinterpret_cast<const char*>(bytes.data()), length);
    bytes = bytes.subspan(length);
  }
  if (!bytes.empty()) return badRequest(fmt::format("{} bytes follow after the last string", bytes.size()));
  return ModelValue::of(StringTensor(shape, std::move(strings)));
}

}  // namespace

Result<TensorHead> tensorHead(std::string_view datatype, std::vector<int64_t> shape, const Limits& limits) {
  TensorHead head{.strings = datatype == kBytes};
  if (!head.strings) {
    const auto kind = kindOf(datatype);
    if (!kind) return badRequest(fmt::format("there is no datatype {}", aglow::quoted(datatype)));
    head.kind = *kind;
  }
  auto created = Shape::create(std::move(shape));
  if (!created.ok()) return badRequest("shape: " + created.error().message);
  head.shape = *std::move(created);
  // A string counts as the bytes of its length, and is counted in full when it is read.
  const int64_t bytes = head.strings ? head.shape.elements() * static_cast<int64_t>(kLengthBytes) : head.bytes();
  if (bytes > limits.tensor)
    return tooLarge(
        fmt::format("{} {} has {} bytes, at most {} are taken", datatype, head.shape.text(), bytes, limits.tensor));
  return head;
}

Result<ModelValue> fromBytes(const TensorHead& head, std::span<const std::byte> bytes,
                             const std::shared_ptr<const void>& owner) {
  if (head.strings) return stringsFrom(head.shape, bytes);
  const Type type(head.kind, head.shape);
  if (std::ssize(bytes) != type.bytes())
    return badRequest(fmt::format("{} {} takes {} bytes, and {} came", *datatypeOf(head.kind), head.shape.text(),
                                  type.bytes(), bytes.size()));
  if (head.kind == ElemKind::Bool)
    for (const std::byte one : bytes)
      if (one > std::byte{1}) return badRequest("a BOOL is 0 or 1");
  return ModelValue::of(Tensor(type, bytes.data(), owner));
}

Result<Blob> toBytes(const ModelValue& value) {
  AGLOW_OK(outputHead(value));
  if (!value.isStrings()) {
    const auto kept = std::make_shared<const Tensor>(value.tensor());
    return Blob{{kept->data(), static_cast<size_t>(kept->bytes())}, kept};
  }
  auto bytes = std::make_shared<std::string>();
  for (const std::string& one : value.strings.front().strings()) {
    const auto length = static_cast<uint32_t>(one.size());
    if (length != one.size()) return badRequest("a string of the answer is longer than the protocol can say");
    bytes->append(reinterpret_cast<const char*>(&length), kLengthBytes).append(one);
  }
  return Blob{std::as_bytes(std::span(*bytes)), bytes};
}

Result<OutputHead> outputHead(const ModelValue& value) {
  const auto refused = [&](std::string_view what) {
    return Error{.code = Code::UnsupportedFeature,
                 .message = fmt::format("the answer is {}, which the protocol has no form for", what)};
  };
  if (value.isStrings()) return OutputHead{kBytes, value.strings.front().shape().dims()};
  if (!value.isTensor()) return refused(value.text());
  const auto datatype = datatypeOf(value.tensor().type().kind());
  if (!datatype) return refused(value.text());
  return OutputHead{*datatype, value.tensor().type().shape().dims()};
}

}  // namespace aglow::serve
