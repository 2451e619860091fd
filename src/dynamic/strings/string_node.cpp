// Which handler runs a node. Operators that move or compare elements need none of their own: they run on the numbers
// that a vocabulary gives to the strings.
#include "dynamic/strings/string_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "dynamic/strings/string_ops.h"
#include "graph/builder.h"

namespace aglow::strings {

namespace {

// Which results of an operator hold elements of its operands.
enum class Carries : uint8_t { None, First, All };

struct Move {
  std::string_view name;
  Carries carries = Carries::First;
  std::string_view domain = {};
};

constexpr Move kMoves[] = {
    {"CenterCropPad"},
    {"Compress"},
    {"Concat"},
    {"ConcatFromSequence"},
    {"DepthToSpace"},
    {"Equal", Carries::None},
    {"Expand"},
    {"Flatten"},
    {"Gather"},
    {"GatherElements"},
    {"GatherND"},
    {"Identity"},
    {"NonZero", Carries::None},
    {"OneHot"},
    {"Optional"},
    {"OptionalGetElement"},
    {"OptionalHasElement", Carries::None},
    {"Pad"},
    {"Reshape"},
    {"ReverseSequence"},
    {"Scatter"},
    {"ScatterElements"},
    {"ScatterND"},
    {"SequenceAt"},
    {"SequenceConstruct"},
    {"SequenceErase"},
    {"SequenceInsert"},
    {"SequenceLength", Carries::None},
    {"Shape", Carries::None},
    {"Size", Carries::None},
    {"Slice"},
    {"SpaceToDepth"},
    {"Split", Carries::All},
    {"SplitToSequence"},
    {"Squeeze"},
    {"Tile"},
    {"Transpose"},
    {"Trilu"},
    {"Unique"},
    {"Unsqueeze"},
    {"Where"},
    {"ArrayFeatureExtractor", Carries::First, "ai.onnx.ml"},
};

Diagnosed<Values> moved(const Call& call, Carries carries) {
  const Vocabulary vocabulary = Vocabulary::of(call.operands);
  Values operands;
  for (const ModelValue& value : call.operands) operands.push_back(vocabulary.numbers(value));
  Diagnosed<Values> results = call.onNumbers(operands);
  if (!results.ok()) return results;
  for (size_t i = 0; i < results->size(); ++i) {
    if (carries == Carries::None || (carries == Carries::First && i > 0)) continue;
    (*results)[i] = orFail(vocabulary.strings((*results)[i]));
  }
  return results;
}

}  // namespace

const onnx::Attribute* Call::attr(std::string_view name) const {
  for (const onnx::Attribute& attribute : node.attributes)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

std::string Call::word(std::string_view name, std::string otherwise) const {
  const onnx::Attribute* attribute = attr(name);
  if (attribute == nullptr) return otherwise;
  if (attribute->type != onnx::AttributeType::String)
    fail(Code::BadNode, fmt::format("expected attribute '{}' to be a string", name));
  return attribute->s;
}

int64_t Call::integer(std::string_view name, int64_t otherwise) const {
  const onnx::Attribute* attribute = attr(name);
  if (attribute == nullptr) return otherwise;
  if (attribute->type != onnx::AttributeType::Int)
    fail(Code::BadNode, fmt::format("expected attribute '{}' to be an int", name));
  return attribute->i;
}

std::vector<int64_t> Call::ints(std::string_view name) const {
  const onnx::Attribute* attribute = attr(name);
  if (attribute == nullptr) return {};
  if (attribute->type != onnx::AttributeType::Ints)
    fail(Code::BadNode, fmt::format("expected attribute '{}' to be a list of ints", name));
  return attribute->ints;
}

std::vector<std::string> Call::words(std::string_view name) const {
  const onnx::Attribute* attribute = attr(name);
  if (attribute == nullptr) return {};
  if (attribute->type != onnx::AttributeType::Strings)
    fail(Code::BadNode, fmt::format("expected attribute '{}' to be a list of strings", name));
  return attribute->strings;
}

const StringTensor& Call::strings(size_t operand) const {
  if (operand >= operands.size() || operands[operand].none)
    fail(Code::BadNode, fmt::format("input {} is required but missing", operand));
  if (!operands[operand].isStrings())
    fail(Code::BadNode, fmt::format("expected strings as input {}, got {}", operand, operands[operand].text()));
  return operands[operand].strings.front();
}

Diagnosed<Values> run(const Call& call) {
  try {
    if (Handler* handler = findHandler(call.node.domain, call.node.opType)) return handler(call);
    if (std::any_of(call.operands.begin(), call.operands.end(), [](const ModelValue& v) { return !v.maps.empty(); }))
      fail(Code::UnsupportedFeature, "the operator does not take maps");
    for (const Move& move : kMoves)
      if (move.name == call.node.opType && move.domain == call.node.domain) return moved(call, move.carries);
    fail(Code::UnsupportedFeature, "the operator does not work on strings");
  } catch (const BuildFailure& failure) {
    return failure.error();
  }
}

}  // namespace aglow::strings
