// Operators of ai.onnx.ml that make maps or take them apart. What the standard leaves open is as onnxruntime has it:
// results are matrices of one row.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "dynamic/strings/numbers.h"
#include "dynamic/strings/string_ops.h"
#include "graph/builder.h"
#include "import/onnx/host_values.h"
#include "support/quote.h"

namespace aglow::strings {

namespace {

constexpr int64_t kMaxColumns = int64_t{1} << 26;  // that a small map may be spread over

const MapValue& mapOf(const Call& call) {
  if (call.operands.empty() || call.operands.front().none) fail(Code::BadNode, "input 0 is required but missing");
  const ModelValue& value = call.operands.front();
  if (!value.isMap()) fail(Code::BadNode, fmt::format("expected a map as input 0, got {}", value.text()));
  return value.maps.front();
}

// The values at some positions in a row; where there is no position, zero or a word.
ModelValue rowOf(const MapColumn& values, const std::vector<int64_t>& positions, const std::string& otherwise) {
  const Shape shape{1, std::ssize(positions)};
  if (const auto* strings = std::get_if<StringTensor>(&values)) {
    std::vector<std::string> words;
    for (const int64_t at : positions)
      words.push_back(at < 0 ? otherwise : strings->strings()[static_cast<size_t>(at)]);
    return ModelValue::of(StringTensor(shape, std::move(words)));
  }
  const Tensor& numbers = std::get<Tensor>(values);
  const int64_t bytes = elemBytes(numbers.type().kind());
  Tensor row(Type(numbers.type().kind(), shape));
  std::byte* to = row.mutableData();
  for (const int64_t at : positions) {
    if (at >= 0) std::copy_n(numbers.data() + at * bytes, bytes, to);
    to += bytes;
  }
  return ModelValue::of(std::move(row));
}

// Where the map has each of some keys, or -1.
template <class T>
std::vector<int64_t> positionsOf(const std::vector<T>& wanted, const MapKeys& keys) {
  const auto* listed = std::get_if<std::vector<T>>(&keys);
  if (listed == nullptr)
    fail(Code::BadNode, fmt::format("expected a map with {} as keys, as the vocabulary has",
                                    std::is_same_v<T, std::string> ? "strings" : "integers"));
  std::vector<int64_t> positions;
  for (const T& key : wanted) {
    const auto it = std::lower_bound(listed->begin(), listed->end(), key);
    positions.push_back(it != listed->end() && *it == key ? it - listed->begin() : -1);
  }
  return positions;
}

Values zipMap(const Call& call) {
  if (call.operands.empty() || !call.operands.front().isTensor()) fail(Code::BadNode, "expected a tensor as input 0");
  const Tensor& numbers = call.operands.front().tensor();
  const MapKeys keys = orFail(onnx::zipMapKeys(call.words("classlabels_strings"), call.ints("classlabels_int64s")));
  const Shape shape = orFail(onnx::zipMapShape(numbers.type(), keys));
  return {ModelValue::mapSequence(MapValue::rows(keys, numbers.retyped(numbers.type().withShape(shape))))};
}

Values dictVectorizer(const Call& call) {
  const MapValue& map = mapOf(call);
  const std::vector<std::string> words = call.words("string_vocabulary");
  const std::vector<int64_t> numbers = call.ints("int64_vocabulary");
  if (words.empty() == numbers.empty())
    fail(Code::BadNode, "expected one of the attributes 'string_vocabulary' and 'int64_vocabulary'");
  return {rowOf(map.values(), words.empty() ? positionsOf(numbers, map.keys()) : positionsOf(words, map.keys()), "")};
}

// The map's values as elements of another kind.
MapColumn castTo(const MapValue& map, const std::string& to) {
  if (to == "TO_STRING") {
    if (map.hasStrings()) return map.strings();
    std::vector<std::string> words;
    for (const double number : map.numbers().doubles()) words.push_back(fmt::format("{:f}", number));
    return StringTensor(Shape{map.size()}, std::move(words));
  }
  if (to != "TO_FLOAT" && to != "TO_INT64")
    fail(Code::BadNode, fmt::format("expected 'cast_to' TO_FLOAT, TO_INT64 or TO_STRING, got {}", quoted(to)));
  const ElemKind kind = to == "TO_FLOAT" ? ElemKind::Float32 : ElemKind::Int64;
  if (map.hasStrings()) return orFail(numbersOf(map.strings(), kind));
  const Type type(kind, Shape{map.size()});
  return isFloat(kind) ? Tensor::fromDoubles(type, map.numbers().doubles())
                       : Tensor::fromInts(type, map.numbers().toInts());
}

Values castMap(const Call& call) {
  const MapValue& map = mapOf(call);
  const auto* keys = std::get_if<std::vector<int64_t>>(&map.keys());
  if (keys == nullptr) fail(Code::BadNode, fmt::format("expected a map with integers as keys, got {}", map.text()));
  const MapColumn values = castTo(map, call.word("cast_to", "TO_FLOAT"));
  const std::string form = call.word("map_form", "DENSE");
  if (form != "DENSE" && form != "SPARSE")
    fail(Code::BadNode, fmt::format("expected 'map_form' DENSE or SPARSE, got {}", quoted(form)));
  const int64_t columns = form == "DENSE" ? map.size() : call.integer("max_map", 1);
  if (columns < 0 || columns > kMaxColumns)
    fail(columns < 0 ? Code::BadNode : Code::TooLarge,
         fmt::format("expected 'max_map' from 0 to {}, got {}", kMaxColumns, columns));
  std::vector<int64_t> wanted(static_cast<size_t>(columns));
  std::iota(wanted.begin(), wanted.end(), 0);
  if (form == "DENSE") return {rowOf(values, wanted, {})};
  if (!keys->empty() && keys->front() < 0)
    fail(Code::RuntimeValue, fmt::format("expected keys that are columns, got {}", keys->front()));
  return {rowOf(values, positionsOf(wanted, map.keys()), "0.f")};
}

}  // namespace

std::span<const HandlerRow> mapHandlers() {
  static constexpr std::string_view kMl = "ai.onnx.ml";
  static constexpr HandlerRow rows[] = {
      {"CastMap", castMap, kMl},
      {"DictVectorizer", dictVectorizer, kMl},
      {"ZipMap", zipMap, kMl},
  };
  return rows;
}

}  // namespace aglow::strings
