#include "dynamic/strings/string_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "dynamic/strings/letter_case.h"
#include "dynamic/strings/numbers.h"
#include "dynamic/strings/regex.h"
#include "graph/builder.h"
#include "import/onnx/tensor_data.h"
#include "support/quote.h"
#include "support/sizes.h"

namespace aglow::strings {

namespace {

// Bytes and elements that a node may make out of much less: a model must not exhaust the machine.
constexpr int64_t kMaxBytes = int64_t{1} << 31;
constexpr int64_t kMaxElements = int64_t{1} << 26;

Values one(StringTensor tensor) { return {ModelValue::of(std::move(tensor))}; }

Values constant(const Call& call) {
  if (call.node.attributes.size() != 1) fail(Code::BadNode, "expected exactly one attribute with the value");
  if (const onnx::Attribute* tensor = call.attr("value"); tensor != nullptr && tensor->t)
    return one(orFail(onnx::toStrings(*tensor->t)));
  if (call.attr("value_string") != nullptr) return one(StringTensor(Shape{}, {call.word("value_string")}));
  const onnx::Attribute* list = call.attr("value_strings");
  if (list == nullptr || list->type != onnx::AttributeType::Strings) fail(Code::BadNode, "expected a value of strings");
  return one(StringTensor(Shape{std::ssize(list->strings)}, list->strings));
}

// Numbers to strings; or strings to numbers of a kind near the one asked for, and from there as numbers are cast.
Values castTo(const Call& call, int32_t to) {
  if (call.operands.empty() || call.operands.front().none || call.operands.front().isSequence)
    fail(Code::BadNode, "expected a tensor as input 0");
  const ModelValue& from = call.operands.front();
  if (to == onnx::kStringType) return from.isStrings() ? Values{from} : one(textOf(from.tensor()));
  const std::optional<ElemKind> kind = elemKindByOnnx(to);
  if (!kind)
    fail(Code::UnsupportedFeature, fmt::format("strings cannot become elements of type {}", onnx::describeElem(to)));
  const bool whole = isInteger(*kind) && *kind != ElemKind::Bool;
  const ElemKind near = *kind == ElemKind::UInt64    ? *kind
                        : whole                      ? ElemKind::Int64
                        : *kind == ElemKind::Bool    ? ElemKind::Float64
                        : *kind == ElemKind::Float64 ? *kind
                                                     : ElemKind::Float32;
  Values operands = call.operands;
  operands.front() = ModelValue::of(orFail(numbersOf(from.strings.front(), near)));
  if (near == *kind) return {operands.front()};
  Diagnosed<Values> results = call.onNumbers(operands);
  if (!results.ok()) throw BuildFailure(results.diagnostics().errors().front());
  return *std::move(results);
}

Values cast(const Call& call) {
  return castTo(call, static_cast<int32_t>(std::clamp<int64_t>(call.integer("to", 0), 0, 1000)));
}

Values castLike(const Call& call) {
  if (call.operands.size() != 2 || call.operands[1].none || call.operands[1].isSequence)
    fail(Code::BadNode, "expected a tensor as input 1");
  const ModelValue& like = call.operands[1];
  return castTo(call, like.isStrings() ? onnx::kStringType : elemInfo(like.tensor().type().kind()).onnx);
}

Values concat(const Call& call) {
  const StringTensor &a = call.strings(0), &b = call.strings(1);
  const Shape shape = orFail(broadcastShapes(a.shape(), b.shape()));
  if (shape.elements() > kMaxElements)
    fail(Code::TooLarge, fmt::format("the result string{} would have over {} elements", shape.text(), kMaxElements));
  const std::vector<int64_t> aStrides = broadcastStrides(a.shape(), shape),
                             bStrides = broadcastStrides(b.shape(), shape);
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()), 0);
  std::vector<std::string> joined;
  int64_t bytes = 0;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    int64_t atA = 0, atB = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) {
      atA += index[axis] * aStrides[axis];
      atB += index[axis] * bStrides[axis];
    }
    joined.push_back(a.strings()[static_cast<size_t>(atA)] + b.strings()[static_cast<size_t>(atB)]);
    bytes += std::ssize(joined.back());
    if (bytes > kMaxBytes) fail(Code::TooLarge, fmt::format("the strings would have over {} bytes", kMaxBytes));
    for (size_t axis = index.size(); axis-- > 0 && ++index[axis] == shape[static_cast<int>(axis)];) index[axis] = 0;
  }
  return one(StringTensor(shape, std::move(joined)));
}

// ---------------------------------------------------------------- StringSplit

// The pieces between blanks, of which several together count as one.
std::vector<std::string> words(std::string_view text, int64_t maxSplits) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  std::vector<std::string> pieces;
  const auto skip = [&] { text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size())); };
  for (skip(); !text.empty(); skip()) {
    const bool rest = std::ssize(pieces) == maxSplits;
    const size_t end = rest ? text.find_last_not_of(kBlanks) + 1 : std::min(text.find_first_of(kBlanks), text.size());
    pieces.emplace_back(text.substr(0, end));
    text.remove_prefix(rest ? text.size() : end);
  }
  return pieces;
}

std::vector<std::string> pieces(std::string_view text, std::string_view delimiter, int64_t maxSplits) {
  std::vector<std::string> found;
  size_t end = 0;
  while (std::ssize(found) < maxSplits && (end = text.find(delimiter)) != std::string_view::npos) {
    found.emplace_back(text.substr(0, end));
    text.remove_prefix(end + delimiter.size());
  }
  found.emplace_back(text);
  return found;
}

Values split(const Call& call) {
  const StringTensor& x = call.strings(0);
  const std::string delimiter = call.word("delimiter");
  const int64_t limit = call.integer("maxsplit", INT64_MAX), maxSplits = limit < 0 ? INT64_MAX : limit;
  std::vector<std::vector<std::string>> rows;
  std::vector<int64_t> counts;
  int64_t widest = 0;
  for (const std::string& text : x.strings()) {
    rows.push_back(delimiter.empty() ? words(text, maxSplits) : pieces(text, delimiter, maxSplits));
    counts.push_back(std::ssize(rows.back()));
    widest = std::max(widest, counts.back());
  }
  std::vector<int64_t> dims = x.shape().dims();
  dims.push_back(widest);
  Shape shape = orFail(Shape::create(std::move(dims)));
  if (shape.elements() > kMaxElements)
    fail(Code::TooLarge, fmt::format("the result string{} would have over {} elements", shape.text(), kMaxElements));
  std::vector<std::string> all;
  all.reserve(static_cast<size_t>(shape.elements()));
  for (std::vector<std::string>& row : rows) {
    row.resize(static_cast<size_t>(widest));
    std::move(row.begin(), row.end(), std::back_inserter(all));
  }
  return {ModelValue::of(StringTensor(std::move(shape), std::move(all))),
          ModelValue::of(Tensor::of(Type(ElemKind::Int64, x.shape()), counts))};
}

// ---------------------------------------------------------------- StringNormalizer

Values normalize(const Call& call) {
  const StringTensor& x = call.strings(0);
  const int rank = x.shape().rank();
  if (rank != 1 && !(rank == 2 && x.shape()[0] == 1))
    fail(Code::BadNode, fmt::format("expected strings of shape [C] or [1,C], got {}", x.text()));
  const std::string action = call.word("case_change_action", "NONE"), locale = call.word("locale", "en_US");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    fail(Code::BadNode, fmt::format("expected 'case_change_action' NONE, LOWER or UPPER, got {}", quoted(action)));
  const int64_t sensitive = call.integer("is_case_sensitive", 0);
  if (sensitive != 0 && sensitive != 1)
    fail(Code::BadNode, fmt::format("expected 'is_case_sensitive' to be 0 or 1, got {}", sensitive));
  const bool exact = sensitive == 1;
  const auto key = [&](const std::string& text) { return exact ? text : inCase(text, LetterCase::Lower, locale); };
  std::unordered_set<std::string> stopwords;
  if (const onnx::Attribute* list = call.attr("stopwords"))
    for (const std::string& text : list->strings) stopwords.insert(key(text));
  std::vector<std::string> kept;
  for (const std::string& text : x.strings()) {
    if (!stopwords.empty() && stopwords.contains(key(text))) continue;
    kept.push_back(action == "NONE" ? text
                                    : inCase(text, action == "LOWER" ? LetterCase::Lower : LetterCase::Upper, locale));
  }
  if (kept.empty()) kept.emplace_back();
  const auto count = std::ssize(kept);
  return one(StringTensor(rank == 1 ? Shape{count} : Shape{1, count}, std::move(kept)));
}

Values regexFullMatch(const Call& call) {
  const StringTensor& x = call.strings(0);
  if (call.attr("pattern") == nullptr) fail(Code::BadNode, "attribute 'pattern' is required but missing");
  const Pattern pattern = orFail(Pattern::create(call.word("pattern")));
  std::vector<int64_t> matches;
  for (const std::string& text : x.strings()) matches.push_back(pattern.matchesAll(text) ? 1 : 0);
  return {ModelValue::of(Tensor::of(Type(ElemKind::Bool, x.shape()), matches))};
}

}  // namespace

std::span<const HandlerRow> stringHandlers() {
  static constexpr HandlerRow rows[] = {
      {"Cast", cast},           {"CastLike", castLike},
      {"Constant", constant},   {"RegexFullMatch", regexFullMatch},
      {"StringConcat", concat}, {"StringNormalizer", normalize},
      {"StringSplit", split},
  };
  return rows;
}

Handler* findHandler(std::string_view domain, std::string_view name) {
  for (const auto& rows : {stringHandlers(), mapHandlers(), tokenizerHandlers(), imageHandlers()})
    for (const HandlerRow& row : rows)
      if (row.name == name && row.domain == domain) return row.handler;
  return nullptr;
}

}  // namespace aglow::strings
