#include "serve/grpc/messages.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>

#include "serve/datatype.h"
#include "support/quote.h"
#include "tensor/convert.h"

namespace aglow::serve {

namespace {

using inference::InferParameter;
using inference::InferTensorContents;
using Parameters = google::protobuf::Map<std::string, InferParameter>;
using Input = inference::ModelInferRequest::InferInputTensor;

// A parameter that is a number from 0 on, or 0 where it is missing.
Result<uint64_t> number(const Parameters& parameters, const std::string& key) {
  const auto found = parameters.find(key);
  if (found == parameters.end()) return uint64_t{0};
  const InferParameter& parameter = found->second;
  if (parameter.parameter_choice_case() == InferParameter::kUint64Param) return parameter.uint64_param();
  if (parameter.parameter_choice_case() == InferParameter::kInt64Param && parameter.int64_param() >= 0)
    return static_cast<uint64_t>(parameter.int64_param());
  return badRequest(fmt::format("the parameter {} has to be a whole number from 0 on", key));
}

// What would change the meaning of the answer is refused; other parameters are left alone.
Status refuse(const Parameters& parameters, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto found = parameters.find(key);
    if (found == parameters.end()) continue;
    const InferParameter& parameter = found->second;
    const bool nothing = parameter.string_param().empty() && !parameter.bool_param() && parameter.int64_param() == 0 &&
                         parameter.uint64_param() == 0;
    if (!nothing)
      return Error{.code = Code::UnsupportedFeature,
                   .message = fmt::format("the parameter {} is not supported", aglow::quoted(key))};
  }
  return {};
}

// Values of a repeated field as a tensor; those of narrow kinds come in wider fields.
template <class D, class Field>
Result<ModelValue> numbers(const TensorHead& head, const Field& field) {
  if (head.shape.elements() != field.size())
    return badRequest(fmt::format("contents have {} elements, the shape {}", field.size(), head.shape.elements()));
  Tensor tensor(Type(head.kind, head.shape));
  std::byte* data = tensor.mutableData();
  for (int64_t i = 0; i < field.size(); ++i) {
    const D value = static_cast<D>(field.Get(static_cast<int>(i)));
    D back{};
    narrow(head.kind, &value, 1, data, i);
    if constexpr (!std::is_same_v<D, double>) {
      widen(head.kind, data, i, 1, 1, &back);
      if (back != value) return badRequest("contents have a number beyond the range of their datatype");
    }
  }
  return ModelValue::of(std::move(tensor));
}

Result<ModelValue> fromContents(const TensorHead& head, const InferTensorContents& contents) {
  if (head.strings) {
    if (head.shape.elements() != contents.bytes_contents_size())
      return badRequest(fmt::format("contents have {} elements, the shape {}", contents.bytes_contents_size(),
                                    head.shape.elements()));
    return ModelValue::of(
        StringTensor(head.shape, {contents.bytes_contents().begin(), contents.bytes_contents().end()}));
  }
  switch (head.kind) {
    case ElemKind::Bool:
      return numbers<uint64_t>(head, contents.bool_contents());
    case ElemKind::Int8:
    case ElemKind::Int16:
    case ElemKind::Int32:
      return numbers<int64_t>(head, contents.int_contents());
    case ElemKind::Int64:
      return numbers<int64_t>(head, contents.int64_contents());
    case ElemKind::UInt8:
    case ElemKind::UInt16:
    case ElemKind::UInt32:
      return numbers<uint64_t>(head, contents.uint_contents());
    case ElemKind::UInt64:
      return numbers<uint64_t>(head, contents.uint64_contents());
    case ElemKind::Float32:
      return numbers<double>(head, contents.fp32_contents());
    case ElemKind::Float64:
      return numbers<double>(head, contents.fp64_contents());
    default:
      return badRequest(fmt::format("{} comes as raw contents only", *datatypeOf(head.kind)));
  }
}

}  // namespace

void silenceProtobuf() { google::protobuf::SetLogHandler(nullptr); }

Result<InferRequest> fromMessage(std::shared_ptr<const inference::ModelInferRequest> message, const Limits& limits) {
  const auto& from = *message;
  InferRequest request{.model = from.model_name(), .version = from.model_version(), .id = from.id()};
  AGLOW_OK(refuse(from.parameters(), {"sequence_id", "sequence_start", "sequence_end"}));
  AGLOW_TRY(const uint64_t priority, number(from.parameters(), "priority"));
  AGLOW_TRY(const uint64_t timeout, number(from.parameters(), "timeout"));
  request.priority = hostPriority(priority);
  constexpr uint64_t kYear = uint64_t{366} * 24 * 3600 * 1000000;
  if (timeout > 0) request.timeout = std::chrono::microseconds(std::min(timeout, kYear));
  const bool raw = from.raw_input_contents_size() > 0;
  if (raw && from.raw_input_contents_size() != from.inputs_size())
    return badRequest(
        fmt::format("there are {} raw contents for {} inputs", from.raw_input_contents_size(), from.inputs_size()));
  if (std::cmp_greater(from.inputs_size(), limits.tensors) || std::cmp_greater(from.outputs_size(), limits.tensors))
    return tooLarge("the request has too many tensors");
  for (int i = 0; i < from.inputs_size(); ++i) {
    const Input& input = from.inputs(i);
    const auto value = [&]() -> Result<ModelValue> {
      AGLOW_OK(refuse(input.parameters(), {"shared_memory_region"}));
      AGLOW_TRY(const TensorHead head,
                tensorHead(input.datatype(), {input.shape().begin(), input.shape().end()}, limits));
      if (!raw) return fromContents(head, input.contents());
      if (input.has_contents()) return badRequest("it has both contents and raw contents");
      return fromBytes(head, std::as_bytes(std::span(from.raw_input_contents(i))), message);
    };
    auto read = value();
    if (!read.ok()) return std::move(read).error().at(fmt::format("input {}", aglow::quoted(input.name())));
    if (!request.inputs.emplace(input.name(), *std::move(read)).second)
      return badRequest(fmt::format("input {} comes twice", aglow::quoted(input.name())));
  }
  for (const auto& output : from.outputs()) {
    AGLOW_OK(refuse(output.parameters(), {"classification", "shared_memory_region"}));
    request.outputs.push_back({.name = output.name()});
  }
  return request;
}

Status toMessage(const InferAnswer& answer, inference::ModelInferResponse& message) {
  message.set_model_name(answer.model);
  message.set_model_version(answer.version);
  message.set_id(answer.id);
  for (const NamedOutput& output : answer.outputs) {
    const auto write = [&]() -> Status {
      AGLOW_TRY(const OutputHead head, outputHead(output.value));
      AGLOW_TRY(const Blob blob, toBytes(output.value));
      auto* to = message.add_outputs();
      to->set_name(output.name);
      to->set_datatype(std::string(head.datatype));
      to->mutable_shape()->Add(head.shape.begin(), head.shape.end());
      message.add_raw_output_contents(blob.bytes.data(), blob.bytes.size());
      return {};
    };
    if (Status done = write(); !done.ok())
      return std::move(done).error().at(fmt::format("output {}", aglow::quoted(output.name)));
  }
  return {};
}

}  // namespace aglow::serve
