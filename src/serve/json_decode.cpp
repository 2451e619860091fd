// Reads requests. simdjson checks all of a text, UTF-8 included, before anything is taken from it.
#include <fmt/format.h>
#include <simdjson.h>

#include <cmath>
#include <limits>

#include "serve/json_codec.h"
#include "support/quote.h"
#include "tensor/convert.h"

namespace aglow::serve {

namespace {

namespace dom = simdjson::dom;
static_assert(kBytesBehind >= simdjson::SIMDJSON_PADDING);

// A parser keeps memory of the longest text that it has met: long ones get a parser of their own.
constexpr size_t kKeptParser = size_t{1} << 20;
constexpr size_t kMaxDepth = 80;  // a shape of the most axes, and what is around it

std::string_view kindName(const dom::element& element) {
  switch (element.type()) {
    case dom::element_type::ARRAY:
      return "a list";
    case dom::element_type::OBJECT:
      return "an object";
    case dom::element_type::STRING:
      return "a string";
    case dom::element_type::BOOL:
      return "a truth value";
    case dom::element_type::NULL_VALUE:
      return "null";
    default:
      return "a number";
  }
}

template <class T>
Result<T> as(const dom::element& element, std::string_view what, std::string_view expected) {
  T value;
  if (element.get(value) != simdjson::SUCCESS)
    return badRequest(fmt::format("{} has to be {}, not {}", what, expected, kindName(element)));
  return value;
}

// An object, or none: there is nothing in it.
using Fields = std::optional<dom::object>;

// The value of a key, where there is one.
std::optional<dom::element> find(const Fields& fields, std::string_view key) {
  dom::element element;
  if (!fields || fields->at_key(key).get(element) != simdjson::SUCCESS) return std::nullopt;
  return element;
}

Result<std::string> stringAt(const Fields& fields, std::string_view key) {
  const auto found = find(fields, key);
  if (!found) return badRequest(fmt::format("{} is missing", key));
  AGLOW_TRY(const auto text, as<std::string_view>(*found, key, "a string"));
  return std::string(text);
}

Result<Fields> parametersOf(const dom::object& object) {
  const auto found = find(object, "parameters");
  if (!found) return Fields();
  AGLOW_TRY(const auto parameters, as<dom::object>(*found, "parameters", "an object"));
  return Fields(parameters);
}

Result<bool> flag(const Fields& parameters, std::string_view key, bool otherwise) {
  const auto found = find(parameters, key);
  if (!found) return otherwise;
  return as<bool>(*found, key, "true or false");
}

Result<uint64_t> number(const Fields& parameters, std::string_view key) {
  const auto found = find(parameters, key);
  if (!found) return uint64_t{0};
  return as<uint64_t>(*found, key, "a whole number from 0 on");
}

// What asks for something that would change the meaning of the answer is refused; other parameters are left alone.
Status refuse(const Fields& parameters, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const auto found = find(parameters, key);
    if (!found || (found->is_uint64() && uint64_t(*found) == 0) || (found->is_bool() && !bool(*found))) continue;
    return Error{.code = Code::UnsupportedFeature,
                 .message = fmt::format("the parameter {} is not supported", aglow::quoted(key))};
  }
  return {};
}

// The numbers of a list in the order of a tensor, gathered into its memory.
class Numbers {
public:
  explicit Numbers(const TensorHead& head) : kind_(head.kind), tensor_(Type(head.kind, head.shape)) {
    data_ = tensor_.mutableData();
  }

  Status take(const dom::element& element) {
    if (count_ == tensor_.type().elements()) return badRequest("data has more elements than the shape");
    const Domain domain = domainOf(kind_);
    if (kind_ == ElemKind::Bool) return takeBool(element);
    if (domain == Domain::Float) return takeFloat(element);
    if (domain == Domain::Signed) return takeInteger<int64_t>(element);
    return takeInteger<uint64_t>(element);
  }
  Result<ModelValue> done() {
    if (count_ != tensor_.type().elements())
      return badRequest(fmt::format("data has {} elements, the shape {}", count_, tensor_.type().elements()));
    return ModelValue::of(std::move(tensor_));
  }

private:
  Status takeBool(const dom::element& element) {
    bool value = false;
    uint64_t digit = 0;
    if (element.get(value) != simdjson::SUCCESS) {
      if (element.get(digit) != simdjson::SUCCESS || digit > 1)
        return badRequest(fmt::format("data[{}] is {}, not true or false", count_, kindName(element)));
      value = digit == 1;
    }
    data_[count_++] = std::byte{value};
    return {};
  }
  Status takeFloat(const dom::element& element) {
    double value = 0;
    if (!element.is_number() || element.get(value) != simdjson::SUCCESS)
      return badRequest(fmt::format("data[{}] is {}, not a number", count_, kindName(element)));
    if (kind_ == ElemKind::Float32) {
      const auto rounded = static_cast<float>(value);
      if (!std::isfinite(rounded)) return outOfRange();
      std::memcpy(data_ + count_++ * 4, &rounded, 4);
      return {};
    }
    narrow(kind_, &value, 1, data_, count_);
    double back = 0;
    widen(kind_, data_, count_++, 1, 1, &back);
    if (!std::isfinite(back)) return outOfRange();
    return {};
  }
  template <class D>
  Status takeInteger(const dom::element& element) {
    D value = 0, back = 0;
    if (element.get(value) != simdjson::SUCCESS) {
      const bool fraction = element.type() == dom::element_type::DOUBLE;
      if (element.is_number() && !fraction) return outOfRange();
      return badRequest(
          fmt::format("data[{}] is {}, not a whole number", count_, fraction ? "a fraction" : kindName(element)));
    }
    narrow(kind_, &value, 1, data_, count_);
    widen(kind_, data_, count_++, 1, 1, &back);
    if (back != value) return outOfRange();
    return {};
  }
  static Status outOfRange() { return badRequest("data has a number beyond the range of its datatype"); }

  ElemKind kind_;
  Tensor tensor_;
  std::byte* data_;
  int64_t count_ = 0;
};

class Texts {
public:
  explicit Texts(const TensorHead& head) : shape_(head.shape) {}

  Status take(const dom::element& element) {
    if (std::ssize(strings_) == shape_.elements()) return badRequest("data has more elements than the shape");
    AGLOW_TRY(const auto text, as<std::string_view>(element, fmt::format("data[{}]", strings_.size()), "a string"));
    strings_.emplace_back(text);
    return {};
  }
  Result<ModelValue> done() {
    if (std::ssize(strings_) != shape_.elements())
      return badRequest(fmt::format("data has {} elements, the shape {}", strings_.size(), shape_.elements()));
    return ModelValue::of(StringTensor(shape_, std::move(strings_)));
  }

private:
  Shape shape_;
  std::vector<std::string> strings_;
};

// Lists in lists have the form of the shape.
Status takeNested(auto& into, const dom::array& list, const Shape& shape, int axis) {
  int64_t count = 0;
  for (const dom::element element : list) {
    if (++count > shape[axis]) break;
    if (axis + 1 == shape.rank()) {
      AGLOW_OK(into.take(element));
      continue;
    }
    AGLOW_TRY(const auto inner, as<dom::array>(element, "a row of data", "a list, as those before it"));
    AGLOW_OK(takeNested(into, inner, shape, axis + 1));
  }
  if (count == shape[axis]) return {};
  return badRequest(fmt::format("data has rows of another length than axis {} of the shape, {}", axis, shape[axis]));
}

Result<ModelValue> takeAll(auto into, const dom::array& list, const Shape& shape) {
  const auto first = list.begin();
  if (shape.rank() > 1 && first != list.end() && (*first).is_array()) {
    AGLOW_OK(takeNested(into, list, shape, 0));
  } else {
    for (const dom::element element : list) AGLOW_OK(into.take(element));
  }
  return into.done();
}

class Decoder {
public:
  Decoder(std::span<const std::byte> binary, const std::shared_ptr<const void>& owner, const Limits& limits)
      : binary_(binary), owner_(owner), limits_(limits) {}

  Result<InferRequest> decode(const dom::element& root, size_t jsonSize) {
    jsonSize_ = jsonSize;
    AGLOW_TRY(const auto object, as<dom::object>(root, "a request", "an object"));
    InferRequest request;
    if (find(object, "id")) {
      AGLOW_TRY(request.id, stringAt(object, "id"));
    }
    AGLOW_TRY(const auto parameters, parametersOf(object));
    AGLOW_OK(refuse(parameters, {"sequence_id", "sequence_start", "sequence_end"}));
    AGLOW_TRY(request.binary, flag(parameters, "binary_data_output", false));
    AGLOW_TRY(const uint64_t priority, number(parameters, "priority"));
    AGLOW_TRY(const uint64_t timeout, number(parameters, "timeout"));
    request.priority = hostPriority(priority);
    constexpr uint64_t kYear = uint64_t{366} * 24 * 3600 * 1000000;
    if (timeout > 0) request.timeout = std::chrono::microseconds(std::min(timeout, kYear));
    AGLOW_OK(takeInputs(object, request));
    AGLOW_OK(takeOutputs(object, request));
    if (!binary_.empty())
      return badRequest(fmt::format("{} bytes follow after the tensors that the request names", binary_.size()));
    return request;
  }

private:
  Status takeInputs(const dom::object& object, InferRequest& request) {
    const auto inputs = find(object, "inputs");
    if (!inputs) return badRequest("inputs is missing");
    AGLOW_TRY(const auto list, as<dom::array>(*inputs, "inputs", "a list"));
    for (const dom::element element : list) {
      if (request.inputs.size() == limits_.tensors) return tooLarge("the request has too many inputs");
      AGLOW_TRY(const auto one, as<dom::object>(element, "an input", "an object"));
      AGLOW_TRY(const std::string name, stringAt(one, "name"));
      auto value = input(one);
      if (!value.ok()) return std::move(value).error().at(fmt::format("input {}", aglow::quoted(name)));
      if (!request.inputs.emplace(name, *std::move(value)).second)
        return badRequest(fmt::format("input {} comes twice", aglow::quoted(name)));
    }
    return {};
  }

  Result<ModelValue> input(const dom::object& object) {
    AGLOW_TRY(const std::string datatype, stringAt(object, "datatype"));
    AGLOW_TRY(const TensorHead head, headOf(object, datatype));
    AGLOW_TRY(const auto parameters, parametersOf(object));
    AGLOW_OK(refuse(parameters, {"shared_memory_region"}));
    const auto data = find(object, "data");
    if (find(parameters, "binary_data_size")) {
      AGLOW_TRY(const uint64_t size, number(parameters, "binary_data_size"));
      if (data) return badRequest("it has both data and a binary_data_size");
      if (size > binary_.size())
        return badRequest(
            fmt::format("it should have {} bytes behind the JSON, and {} are left", size, binary_.size()));
      if (std::cmp_greater(size, limits_.tensor))
        return tooLarge(fmt::format("at most {} bytes are taken", limits_.tensor));
      const auto bytes = binary_.first(size);
      binary_ = binary_.subspan(size);
      return fromBytes(head, bytes, owner_);
    }
    if (!data) return badRequest("it has neither data nor a binary_data_size");
    AGLOW_TRY(const auto list, as<dom::array>(*data, "data", "a list"));
    // Every element has a character at least: no memory is used for a shape that only claims to be large.
    if (std::cmp_greater(head.shape.elements(), jsonSize_))
      return badRequest(fmt::format("data has fewer elements than the shape, {}", head.shape.elements()));
    return head.strings ? takeAll(Texts(head), list, head.shape) : takeAll(Numbers(head), list, head.shape);
  }

  Result<TensorHead> headOf(const dom::object& object, std::string_view datatype) {
    const auto shape = find(object, "shape");
    if (!shape) return badRequest("shape is missing");
    AGLOW_TRY(const auto list, as<dom::array>(*shape, "shape", "a list"));
    std::vector<int64_t> dims;
    for (const dom::element dim : list) {
      if (dims.size() == Shape::kMaxRank) return badRequest("shape has too many axes");
      AGLOW_TRY(dims.emplace_back(), as<int64_t>(dim, "a size of the shape", "a whole number"));
    }
    return tensorHead(datatype, std::move(dims), limits_);
  }

  Status takeOutputs(const dom::object& object, InferRequest& request) {
    const auto outputs = find(object, "outputs");
    if (!outputs || outputs->is_null()) return {};
    AGLOW_TRY(const auto list, as<dom::array>(*outputs, "outputs", "a list"));
    for (const dom::element element : list) {
      if (request.outputs.size() == limits_.tensors) return tooLarge("the request asks for too many outputs");
      AGLOW_TRY(const auto one, as<dom::object>(element, "an output", "an object"));
      WantedOutput wanted;
      AGLOW_TRY(wanted.name, stringAt(one, "name"));
      AGLOW_TRY(const auto parameters, parametersOf(one));
      AGLOW_OK(refuse(parameters, {"classification", "shared_memory_region"}));
      AGLOW_TRY(wanted.binary, flag(parameters, "binary_data", request.binary));
      request.outputs.push_back(std::move(wanted));
    }
    return {};
  }

  std::span<const std::byte> binary_;  // what is left of it
  const std::shared_ptr<const void>& owner_;
  const Limits& limits_;
  size_t jsonSize_ = 0;
};

}  // namespace

Result<InferRequest> decodeRequest(std::span<const std::byte> body, size_t jsonSize,
                                   const std::shared_ptr<const void>& owner, const Limits& limits) {
  if (jsonSize > body.size())
    return badRequest(fmt::format("the JSON should have {} bytes, the body has {}", jsonSize, body.size()));
  thread_local dom::parser kept;
  dom::parser own;
  dom::parser& parser = jsonSize > kKeptParser ? own : kept;
  dom::element root;
  simdjson::error_code fault = parser.allocate(std::max(jsonSize, kBytesBehind), kMaxDepth);
  if (fault == simdjson::SUCCESS)
    fault = parser.parse(reinterpret_cast<const uint8_t*>(body.data()), jsonSize, false).get(root);
  if (fault == simdjson::MEMALLOC) return Error{.code = Code::OutOfMemory, .message = "no memory to read the request"};
  if (fault != simdjson::SUCCESS) return badRequest(fmt::format("no JSON: {}", simdjson::error_message(fault)));
  return Decoder(body.subspan(jsonSize), owner, limits).decode(root, jsonSize);
}

}  // namespace aglow::serve
