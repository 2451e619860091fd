// Strings in a program that is compiled whole: where all that a value can hold is known, numbers stand for the strings,
// and labels tell which. Nodes that do no more than move such elements, and classifiers with named classes, then become
// nodes on numbers.
#pragma once

#include <optional>

#include "import/onnx/op_import.h"

namespace aglow::onnx {

// Positions in a list of the strings, each of which stands there once.
struct NumberedStrings {
  Tensor numbers;
  Labels labels;
};
NumberedStrings numbered(const StringTensor& strings);

// A node that works on numbers instead, and the labels of its first result.
struct LabelledNode {
  Node node;
  std::vector<Imported> operands;
  Labels labels;
};
// Nothing when the operator looks into strings, or makes others than those that it is given.
std::optional<LabelledNode> onNumbers(const Node& node, const std::vector<Imported>& operands);

}  // namespace aglow::onnx
