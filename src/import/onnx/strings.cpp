// What nodes show of strings in their attributes, and the rows of operators that work on nothing else.
#include "import/onnx/strings.h"

#include <algorithm>

#include "import/onnx/graph_import.h"
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
    return !attribute.strings.empty() && !node.outputs.empty() && !node.outputs.front().empty();
  if (attribute.name == "to" && node.opType == "Cast") return attribute.i == kStringType;
  if (attribute.name == "value" || attribute.name == "values_tensor")
    return attribute.t && attribute.t->dataType == kStringType;
  return std::find(std::begin(kResults), std::end(kResults), attribute.name) != std::end(kResults);
}

void runtimeOnly(OpImport& c) {
  c.leaveToRuntime();
  throw BuildFailure(stringsNeedRuntime());
}

}  // namespace

bool makesStrings(const Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(),
                     [&](const Attribute& attribute) { return namesResult(attribute, node); });
}

bool GraphImport::isStrings(const Scope& scope, const std::string& name) const {
  for (const Scope* s = &scope; s != nullptr; s = s->function != nullptr ? nullptr : s->outer)
    if (s->strings.contains(name)) return true;
  return false;
}

void GraphImport::leaveStrings() const {
  if (mayCut_) throw NeedsValue{};
  throw BuildFailure(stringsNeedRuntime());
}

bool worksOnStrings(const Node& node) {
  const std::span<const OpRow> rows = stringRows();
  return makesStrings(node) || std::any_of(rows.begin(), rows.end(), [&](const OpRow& row) {
           return row.name == node.opType && row.domain == node.domain;
         });
}

Error stringsNeedRuntime() {
  return {.code = Code::UnsupportedFeature,
          .message = "strings are not compiled",
          .where = {},
          .hint = "models with strings run through `aglow run` and the API, part by part"};
}

std::span<const OpRow> stringRows() {
  static constexpr std::string_view kMl = "ai.onnx.ml";
  static constexpr OpRow rows[] = {
      {"RegexFullMatch", runtimeOnly},
      {"StringConcat", runtimeOnly},
      {"StringNormalizer", runtimeOnly},
      {"StringSplit", runtimeOnly},
      {"CategoryMapper", runtimeOnly, 1, INT64_MAX, kMl},
      {"LabelEncoder", runtimeOnly, 1, 1, kMl},
  };
  return rows;
}

}  // namespace aglow::onnx
