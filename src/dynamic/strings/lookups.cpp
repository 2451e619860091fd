// Operators whose strings stand in their attributes: tables from and to strings, and classifiers with named classes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "dynamic/strings/string_node.h"
#include "graph/builder.h"
#include "import/onnx/tensor_data.h"

namespace aglow::strings {

namespace {

using onnx::Attribute;
using onnx::AttributeType;

constexpr std::string_view kMl = "ai.onnx.ml";

// An operator with a list of strings that may be a list of integers as well.
struct Row {
  std::string_view name;
  std::string_view strings;
  std::string_view numbers;
  bool named = false;  // whether the strings are what the first result consists of
  std::string_view domain = kMl;
};

constexpr Row kRows[] = {
    {"LinearClassifier", "classlabels_strings", "classlabels_ints", true},
    {"SVMClassifier", "classlabels_strings", "classlabels_ints", true},
    {"TreeEnsembleClassifier", "classlabels_strings", "classlabels_int64s", true},
    {"OneHotEncoder", "cats_strings", "cats_int64s"},
    {"TfIdfVectorizer", "pool_strings", "pool_int64s", false, ""},
};

// Attributes under their names, to be taken out and put back.
class Attributes {
public:
  explicit Attributes(const onnx::Node& node) {
    for (const Attribute& attribute : node.attributes) all_.emplace(attribute.name, attribute);
  }

  bool has(const std::string& name) const { return all_.contains(name); }
  void erase(const std::string& name) { all_.erase(name); }
  const Attribute* find(const std::string& name, AttributeType type) const {
    const auto it = all_.find(name);
    if (it == all_.end()) return nullptr;
    if (it->second.type != type) fail(Code::BadNode, fmt::format("attribute '{}' is of another type", name));
    return &it->second;
  }
  void set(const std::string& name, std::vector<int64_t> numbers) {
    Attribute attribute;
    attribute.name = name;
    attribute.type = AttributeType::Ints;
    attribute.ints = std::move(numbers);
    set(std::move(attribute));
  }
  void set(const std::string& name, int64_t number) {
    Attribute attribute;
    attribute.name = name;
    attribute.type = AttributeType::Int;
    attribute.i = number;
    set(std::move(attribute));
  }
  void set(Attribute attribute) { all_[attribute.name] = std::move(attribute); }

  // Strings in a list or in a tensor; nothing when the attributes hold none under these names.
  std::optional<std::vector<std::string>> strings(const std::string& list, const std::string& tensor) const {
    if (const Attribute* found = find(list, AttributeType::Strings)) return found->strings;
    const auto it = all_.find(tensor);
    if (it == all_.end() || !it->second.t || it->second.t->dataType != onnx::kStringType) return std::nullopt;
    return orFail(onnx::toStrings(*it->second.t)).strings();
  }

  std::vector<Attribute> list() const {
    std::vector<Attribute> attributes;
    for (const auto& [name, attribute] : all_) attributes.push_back(attribute);
    return attributes;
  }

private:
  std::map<std::string, Attribute> all_;
};

std::vector<int64_t> numbersOf(const Vocabulary& vocabulary, const std::vector<std::string>& words) {
  std::vector<int64_t> numbers;
  for (const std::string& word : words) numbers.push_back(vocabulary.number(word));
  return numbers;
}

// Older forms of a table have its two columns in either direction; LabelEncoder since version 2 has keys and values.
void toLabelEncoder(Attributes& attributes, std::string_view name, bool fromStrings) {
  const std::string listed = name == "CategoryMapper" ? "cats_strings" : "classes_strings";
  const Attribute* strings = attributes.find(listed, AttributeType::Strings);
  if (strings == nullptr) fail(Code::BadNode, fmt::format("attribute '{}' is required but missing", listed));
  Attribute words = *strings;
  std::vector<int64_t> numbers(words.strings.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  if (name == "CategoryMapper") {
    const Attribute* given = attributes.find("cats_int64s", AttributeType::Ints);
    numbers = given != nullptr ? given->ints : std::vector<int64_t>{};
  }
  if (numbers.size() != words.strings.size())
    fail(Code::BadNode, fmt::format("expected as many integers as strings in the table, got {} and {}", numbers.size(),
                                    words.strings.size()));
  attributes.erase(listed);
  attributes.erase("cats_int64s");
  attributes.set(fromStrings ? "values_int64s" : "keys_int64s", std::move(numbers));
  words.name = fromStrings ? "keys_strings" : "values_strings";
  attributes.set(std::move(words));
}

// The columns of LabelEncoder that hold strings, and what it gives for unknown keys.
struct Columns {
  std::optional<std::vector<std::string>> keys, values;
  std::string otherwise = "_Unused";
};

Columns columnsOf(const Attributes& attributes) {
  Columns columns{.keys = attributes.strings("keys_strings", "keys_tensor"),
                  .values = attributes.strings("values_strings", "values_tensor")};
  if (const Attribute* given = attributes.find("default_string", AttributeType::String)) columns.otherwise = given->s;
  if (const auto given = attributes.strings("", "default_tensor"))
    columns.otherwise = given->size() == 1 ? given->front() : columns.otherwise;
  return columns;
}

std::unique_ptr<NumberedNode> labelEncoder(Attributes& attributes) {
  const Columns columns = columnsOf(attributes);
  std::vector<std::string> words = {columns.otherwise};
  for (const auto* column : {&columns.keys, &columns.values})
    if (*column) words.insert(words.end(), (*column)->begin(), (*column)->end());
  auto result = std::make_unique<NumberedNode>(NumberedNode{.vocabulary = Vocabulary(std::move(words))});
  const auto replace = [&](const std::string& prefix, const std::vector<std::string>& column) {
    attributes.erase(prefix + "_strings");
    attributes.erase(prefix + "_tensor");
    attributes.set(prefix + "_int64s", numbersOf(result->vocabulary, column));
  };
  if (columns.keys) replace("keys", *columns.keys);
  if (columns.values) {
    replace("values", *columns.values);
    attributes.erase("default_tensor");
    attributes.set("default_int64", result->vocabulary.number(columns.otherwise));
    result->named = true;
  }
  attributes.erase("default_string");
  return result;
}

std::unique_ptr<NumberedNode> listed(const Row& row, Attributes& attributes) {
  const Attribute* list = attributes.find(std::string(row.strings), AttributeType::Strings);
  if (list == nullptr) return nullptr;
  auto result = std::make_unique<NumberedNode>(NumberedNode{.vocabulary = Vocabulary(list->strings)});
  std::vector<int64_t> numbers = numbersOf(result->vocabulary, list->strings);
  attributes.erase(std::string(row.strings));
  attributes.set(std::string(row.numbers), std::move(numbers));
  result->named = row.named;
  return result;
}

std::unique_ptr<NumberedNode> rewritten(const onnx::Node& node, bool fromStrings, Attributes& attributes) {
  if (node.domain == kMl && (node.opType == "CategoryMapper" || attributes.has("classes_strings")))
    toLabelEncoder(attributes, node.opType, fromStrings);
  if (node.domain == kMl && (node.opType == "LabelEncoder" || node.opType == "CategoryMapper"))
    return labelEncoder(attributes);
  for (const Row& row : kRows)
    if (row.name == node.opType && row.domain == node.domain) return listed(row, attributes);
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<NumberedNode>> numbered(const onnx::Node& node, const onnx::Opsets& opsets, bool fromStrings) {
  try {
    Attributes attributes(node);
    std::unique_ptr<NumberedNode> result = rewritten(node, fromStrings, attributes);
    if (!result) return result;
    result->opsets = opsets;
    onnx::Node copy{.name = node.name,
                    .opType = node.opType,
                    .domain = node.domain,
                    .overload = {},
                    .inputs = node.inputs,
                    .outputs = node.outputs,
                    .attributes = attributes.list()};
    if (node.opType == "LabelEncoder" || node.opType == "CategoryMapper") {
      copy.opType = "LabelEncoder";
      int64_t& version = result->opsets[node.domain];
      version = std::max<int64_t>(version, 2);
    }
    auto graph = std::make_shared<onnx::Graph>();
    for (const std::string& name : node.outputs)
      if (!name.empty()) graph->outputs.push_back({.name = name, .type = {}});
    graph->nodes.push_back(std::move(copy));
    result->graph = std::move(graph);
    return result;
  } catch (const BuildFailure& failure) {
    return failure.error();
  }
}

}  // namespace aglow::strings
