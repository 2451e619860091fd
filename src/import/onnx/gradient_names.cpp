#include "import/onnx/gradient_names.h"

namespace aglow::onnx {

std::vector<std::string> operandNames(const Node& node) {
  std::vector<std::string> names = node.inputs;
  if (asksForGradient(node))
    for (const Attribute& attribute : node.attributes)
      if (attribute.name == "y") names.push_back(attribute.s);
  return names;
}

std::set<std::string> variablesOf(const Graph& graph) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes)
    if (asksForGradient(node))
      for (const Attribute& attribute : node.attributes)
        if (attribute.name == "xs") names.insert(attribute.strings.begin(), attribute.strings.end());
  return names;
}

}  // namespace aglow::onnx
