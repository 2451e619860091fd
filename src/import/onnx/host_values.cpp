// What nodes show of strings in their attributes, and the rows of operators that work on nothing but strings and maps.
#include "import/onnx/host_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/graph_import.h"
#include "import/onnx/op_contrib.h"
#include "import/onnx/op_tables.h"
#include "import/onnx/tensor_data.h"

namespace aglow::onnx {

namespace {

// Attributes that turn the result of their node into strings.
constexpr std::string_view kResults[] = {"value_string", "value_strings", "values_strings", "classes_strings"};
// Those of which the first result is made, when it is wanted.
constexpr std::string_view kLabels = "classlabels_strings";

bool namesResult(const Attribute& attribute, const Node& node) {
  if (attribute.name == kLabels)
    return !attribute.strings.empty() && !node.outputs.empty() && !node.outputs.front().empty() &&
           node.opType != "ZipMap";
  if (attribute.name == "to" && node.opType == "Cast") return attribute.i == kStringType;
  if (attribute.name == "value" || attribute.name == "values_tensor")
    return attribute.t && attribute.t->dataType == kStringType;
  return std::find(std::begin(kResults), std::end(kResults), attribute.name) != std::end(kResults);
}

void runtimeOnly(OpImport& c) {
  c.leaveToRuntime();
  throw BuildFailure(needsRuntime());
}

// Maps, or a table with labelled columns where there is no runtime.
void zipMap(OpImport& c) {
  c.leaveToRuntime();
  const Value x = c.in(0);
  MapKeys keys = orFail(zipMapKeys(c.words("classlabels_strings"), c.ints("classlabels_int64s")));
  const Shape shape = orFail(zipMapShape(x.type(), keys));
  c.out(0, Imported::labelled(c.b.reshaped(x, shape.dims()), {.of = Labels::Of::Columns, .names = std::move(keys)}));
}

}  // namespace

bool makesStrings(const Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(),
                     [&](const Attribute& attribute) { return namesResult(attribute, node); });
}

bool GraphImport::isOnHost(const Scope& scope, const std::string& name) const {
  for (const Scope* s = &scope; s != nullptr; s = s->function != nullptr ? nullptr : s->outer)
    if (s->onHost.contains(name)) return true;
  return false;
}

void GraphImport::leaveToHost() const {
  if (mayCut_) throw NeedsValue{};
  throw BuildFailure(needsRuntime());
}

bool holdsMaps(const TypeProto& type) {
  const bool inside = type.kind == TypeProto::Kind::Optional || type.kind == TypeProto::Kind::Sequence;
  return inside ? holdsMaps(*type.elem) : type.kind == TypeProto::Kind::Map;
}

Result<MapKeys> zipMapKeys(const std::vector<std::string>& words, const std::vector<int64_t>& numbers) {
  if (words.empty() == numbers.empty())
    return Error{.code = Code::BadNode,
                 .message = "expected one of the attributes 'classlabels_int64s' and 'classlabels_strings'"};
  return words.empty() ? MapKeys(numbers) : MapKeys(words);
}

Result<Shape> zipMapShape(const Type& type, const MapKeys& keys) {
  if (type.kind() != ElemKind::Float32 || type.rank() < 1 || type.rank() > 2 ||
      type.dim(type.rank() - 1) != sizeOf(keys))
    return Error{.code = Code::BadNode,
                 .message = fmt::format("expected f32[rows,{}], a column for each class label, got {}", sizeOf(keys),
                                        type.text())};
  return Shape{type.rank() == 1 ? 1 : type.dim(0), sizeOf(keys)};
}

bool worksOnHost(const Node& node) {
  const std::span<const OpRow> rows = hostRows();
  return makesStrings(node) || std::any_of(rows.begin(), rows.end(), [&](const OpRow& row) {
           return row.name == node.opType && row.domain == node.domain;
         });
}

Error needsRuntime() {
  return {.code = Code::UnsupportedFeature,
          .message = "strings, maps and image files are not compiled",
          .where = {},
          .hint = "models with them run through `aglow run` and the API, part by part"};
}

std::span<const OpRow> hostRows() {
  static constexpr std::string_view kMl = "ai.onnx.ml";
  static constexpr OpRow rows[] = {
      {"ImageDecoder", runtimeOnly},
      {"RegexFullMatch", runtimeOnly},
      {"StringConcat", runtimeOnly},
      {"StringNormalizer", runtimeOnly},
      {"StringSplit", runtimeOnly},
      {"CategoryMapper", runtimeOnly, 1, INT64_MAX, kMl},
      {"LabelEncoder", runtimeOnly, 1, 1, kMl},
      {"CastMap", runtimeOnly, 1, INT64_MAX, kMl},
      {"DictVectorizer", runtimeOnly, 1, INT64_MAX, kMl},
      {"ZipMap", zipMap, 1, INT64_MAX, kMl},
      {"Tokenizer", runtimeOnly, 1, INT64_MAX, kMicrosoft},
  };
  return rows;
}

}  // namespace aglow::onnx
