// Nodes that take or give strings or maps, run on the host between compiled parts.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dynamic/strings/vocabulary.h"
#include "import/onnx/proto.h"
#include "support/diagnostics.h"

namespace aglow::strings {

using Values = std::vector<ModelValue>;

// A node and the values of its operands, by position. Handlers of operators throw BuildFailure.
struct Call {
  const onnx::Node& node;
  Values operands;
  // The results of the same node on operands without strings.
  std::function<Diagnosed<Values>(const Values&)> onNumbers;

  const onnx::Attribute* attr(std::string_view name) const;
  std::string word(std::string_view name, std::string otherwise = {}) const;
  int64_t integer(std::string_view name, int64_t otherwise) const;
  // None where the attribute is missing.
  std::vector<int64_t> ints(std::string_view name) const;
  std::vector<std::string> words(std::string_view name) const;
  // An operand of strings; BadNode when it is missing or something else.
  const StringTensor& strings(size_t operand) const;
};

// The results of a node; UnsupportedFeature when its operator does not take strings or maps.
Diagnosed<Values> run(const Call& call);

// A node whose strings are in its attributes (keys, labels, categories), as one that has their numbers instead. It can
// be compiled.
struct NumberedNode {
  Vocabulary vocabulary;
  std::shared_ptr<const onnx::Graph> graph;  // the node alone, with the same names
  onnx::Opsets opsets;
  bool named = false;  // whether the first result holds numbers of strings
};
// Null when the operator is none of these. Some tables go either way, as the node's operand is of strings or numbers.
Result<std::unique_ptr<NumberedNode>> numbered(const onnx::Node& node, const onnx::Opsets& opsets, bool fromStrings);

}  // namespace aglow::strings
