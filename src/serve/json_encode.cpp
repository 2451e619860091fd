// Writes answers.
#include <fmt/compile.h>
#include <fmt/format.h>

#include <cmath>

#include "serve/json_codec.h"
#include "support/quote.h"
#include "support/utf8.h"
#include "tensor/convert.h"

namespace aglow::serve {

namespace {

constexpr int64_t kChunk = 512;

Error noWord(std::string_view what) {
  return {.code = Code::UnsupportedFeature,
          .message = fmt::format("the answer holds {}, which JSON has no word for", what),
          .where = {},
          .hint = "ask for the output with \"binary_data\": true"};
}

void appendNumber(std::string& out, double value, bool single) {
  if (single)
    fmt::format_to(std::back_inserter(out), FMT_COMPILE("{}"), static_cast<float>(value));
  else
    fmt::format_to(std::back_inserter(out), FMT_COMPILE("{}"), value);
}
void appendNumber(std::string& out, int64_t value, bool /*single*/) {
  fmt::format_to(std::back_inserter(out), FMT_COMPILE("{}"), value);
}
void appendNumber(std::string& out, uint64_t value, bool /*single*/) {
  fmt::format_to(std::back_inserter(out), FMT_COMPILE("{}"), value);
}

Status appendNumbers(std::string& out, const Tensor& tensor) {
  const ElemKind kind = tensor.type().kind();
  return inDomain(domainOf(kind), [&]<class D>(D) -> Status {
    D values[kChunk];
    for (int64_t first = 0; first < tensor.type().elements(); first += kChunk) {
      const int64_t count = std::min(kChunk, tensor.type().elements() - first);
      widen(kind, tensor.data(), first, count, 1, values);
      for (int64_t i = 0; i < count; ++i) {
        if (first + i > 0) out += ',';
        if constexpr (std::is_same_v<D, double>)
          if (!std::isfinite(values[i])) return noWord("NaN or infinity");
        if (kind == ElemKind::Bool)
          out += values[i] == 0 ? "false" : "true";
        else
          appendNumber(out, values[i], kind != ElemKind::Float64);
      }
    }
    return {};
  });
}

Status append(EncodedAnswer& answer, const NamedOutput& output) {
  std::string& out = answer.json;
  AGLOW_TRY(const OutputHead head, outputHead(output.value));
  out += fmt::format(R"({{"name":{},"datatype":"{}","shape":[{}],)", jsonString(output.name), head.datatype,
                     fmt::join(head.shape, ","));
  if (output.binary) {
    AGLOW_TRY(Blob blob, toBytes(output.value));
    out += fmt::format(R"("parameters":{{"binary_data_size":{}}}}})", blob.bytes.size());
    answer.blobs.push_back(std::move(blob));
    return {};
  }
  out += "\"data\":[";
  if (output.value.isStrings()) {
    bool more = false;
    for (const std::string& text : output.value.strings.front().strings()) {
      if (more) out += ',';
      more = true;
      for (size_t at = 0, length = 0; at < text.size(); at += length)
        if (length = utf8Length(text, at); length == 0) return noWord("strings that are no UTF-8");
      out += jsonString(text);
    }
  } else {
    AGLOW_OK(appendNumbers(out, output.value.tensor()));
  }
  out += "]}";
  return {};
}

}  // namespace

Result<EncodedAnswer> encodeAnswer(const InferAnswer& answer) {
  EncodedAnswer encoded;
  encoded.json =
      fmt::format(R"({{"model_name":{},"model_version":{},)", jsonString(answer.model), jsonString(answer.version));
  if (!answer.id.empty()) encoded.json += fmt::format(R"("id":{},)", jsonString(answer.id));
  encoded.json += "\"outputs\":[";
  for (size_t i = 0; i < answer.outputs.size(); ++i) {
    if (i > 0) encoded.json += ',';
    if (Status done = append(encoded, answer.outputs[i]); !done.ok())
      return std::move(done).error().at(fmt::format("output {}", quoted(answer.outputs[i].name)));
  }
  encoded.json += "]}";
  return encoded;
}

std::string jsonString(std::string_view text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8Length(text, at);
    const char first = text[at];
    if (length == 0)
      out += "\uFFFD";
    else if (first == '"' || first == '\\')
      (out += '\\') += first;
    else if (static_cast<unsigned char>(first) < 0x20)
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", first);
    else
      out += text.substr(at, length);
    at += std::max<size_t>(length, 1);
  }
  return out += '"';
}

std::string errorJson(std::string_view text) { return fmt::format(R"({{"error":{}}})", jsonString(text)); }

}  // namespace aglow::serve
