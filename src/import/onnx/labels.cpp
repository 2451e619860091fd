#include "import/onnx/labels.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "import/onnx/tensor_data.h"

namespace aglow::onnx {

namespace {

constexpr std::string_view kMl = "ai.onnx.ml";

struct Operator {
  std::string_view name;
  std::string_view domain = {};
};

// Their first result holds elements of their operands, and nothing else.
constexpr Operator kMoves[] = {
    {"Concat"},   {"Expand"},    {"Flatten"},   {"Gather"}, {"GatherElements"},
    {"GatherND"}, {"Identity"},  {"Reshape"},   {"Slice"},  {"Squeeze"},
    {"Tile"},     {"Transpose"}, {"Unsqueeze"}, {"Where"},  {"ArrayFeatureExtractor", kMl},
};

// Classifiers: the list that names classes, and the one that numbers them.
struct Classifier {
  std::string_view name, words, numbers;
};
constexpr Classifier kClassifiers[] = {
    {"LinearClassifier", "classlabels_strings", "classlabels_ints"},
    {"SVMClassifier", "classlabels_strings", "classlabels_ints"},
    {"TreeEnsembleClassifier", "classlabels_strings", "classlabels_int64s"},
};

const Attribute* attributeOf(const Node& node, std::string_view name, AttributeType type) {
  const auto it = std::find_if(node.attributes.begin(), node.attributes.end(), [&](const Attribute& attribute) {
    return attribute.name == name && attribute.type == type;
  });
  return it == node.attributes.end() ? nullptr : &*it;
}

Node withInts(Node node, std::string_view removed, std::string_view name, std::vector<int64_t> values) {
  std::erase_if(node.attributes, [&](const Attribute& attribute) { return attribute.name == removed; });
  Attribute& attribute = node.attributes.emplace_back();
  attribute.name = name;
  attribute.type = AttributeType::Ints;
  attribute.ints = std::move(values);
  return node;
}

bool isWords(const Imported& value) {
  return value.kind == Imported::Kind::Labelled && value.labels->of == Labels::Of::Elements;
}

// Strings of one list pass through.
std::optional<LabelledNode> moved(const Node& node, const std::vector<Imported>& operands) {
  const Labels* labels = nullptr;
  std::vector<Imported> plain;
  for (const Imported& operand : operands) {
    if (isWords(operand) && labels != nullptr && labels->names != operand.labels->names) return std::nullopt;
    if (isWords(operand)) labels = operand.labels.get();
    plain.push_back(isWords(operand) ? Imported::of(operand.tensor) : operand);
  }
  if (labels == nullptr) return std::nullopt;
  return LabelledNode{.node = node, .operands = std::move(plain), .labels = *labels};
}

bool isStringCast(const Node& node, const std::vector<Imported>& operands) {
  const Attribute* to = attributeOf(node, "to", AttributeType::Int);
  return node.opType == "Cast" && node.domain.empty() && to != nullptr && to->i == kStringType &&
         operands.size() == 1 && isWords(operands.front());
}

}  // namespace

NumberedStrings numbered(const StringTensor& strings) {
  std::vector<std::string> words;
  std::unordered_map<std::string, int64_t> positions;
  std::vector<int64_t> numbers;
  for (const std::string& text : strings.strings()) {
    const auto [it, isNew] = positions.emplace(text, std::ssize(words));
    if (isNew) words.push_back(text);
    numbers.push_back(it->second);
  }
  return {.numbers = Tensor::of(Type(ElemKind::Int64, strings.shape()), numbers),
          .labels = {.of = Labels::Of::Elements, .names = std::move(words)}};
}

std::optional<LabelledNode> onNumbers(const Node& node, const std::vector<Imported>& operands) {
  for (const Operator& move : kMoves)
    if (move.name == node.opType && move.domain == node.domain) return moved(node, operands);
  if (isStringCast(node, operands)) {
    Node identity = node;
    identity.opType = "Identity";
    identity.attributes.clear();
    return moved(identity, operands);
  }
  for (const Classifier& row : kClassifiers) {
    if (row.name != node.opType || node.domain != kMl) continue;
    const Attribute* words = attributeOf(node, row.words, AttributeType::Strings);
    if (words == nullptr) return std::nullopt;
    const NumberedStrings names = numbered(StringTensor(Shape{std::ssize(words->strings)}, words->strings));
    return LabelledNode{.node = withInts(node, row.words, row.numbers, names.numbers.toInts()),
                        .operands = operands,
                        .labels = names.labels};
  }
  return std::nullopt;
}

}  // namespace aglow::onnx
