#include "import/onnx/op_contrib.h"

#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/op_support.h"

namespace aglow::onnx {

Attribute intAttribute(std::string_view name, int64_t value) {
  Attribute attribute;
  attribute.name = name;
  attribute.type = AttributeType::Int;
  attribute.i = value;
  return attribute;
}

Attribute floatAttribute(std::string_view name, double value) {
  Attribute attribute;
  attribute.name = name;
  attribute.type = AttributeType::Float;
  attribute.f = static_cast<float>(value);
  return attribute;
}

Node standardNode(const OpImport& c, std::string_view opType) {
  Node node = c.node;
  node.domain.clear();
  node.opType = opType;
  return node;
}

Value standardValue(OpImport& c, std::string_view opType, int64_t opset, std::initializer_list<Value> operands) {
  std::vector<Imported> given;
  for (const Value v : operands) given.push_back(v ? Imported::of(v) : Imported::none());
  Node node = standardNode(c, opType);
  node.outputs.resize(1);
  return c.standard(node, opset, std::move(given)).front().tensor;
}

Value channelsFirst(Builder& b, Value x) {
  std::vector<int64_t> perm = range(0, x.rank());
  if (x.rank() > 2) std::rotate(perm.begin() + 1, perm.end() - 1, perm.end());
  return b.transposed(x, std::move(perm));
}

Value channelsLast(Builder& b, Value x) {
  std::vector<int64_t> perm = range(0, x.rank());
  if (x.rank() > 2) std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
  return b.transposed(x, std::move(perm));
}

Value activated(OpImport& c, Value x) {
  const std::string name = c.word("activation", "");
  if (name.empty()) return x;
  static constexpr std::string_view kPlain[] = {"Relu", "Tanh", "Sigmoid", "Softplus", "Softsign", "HardSwish", "Gelu"};
  static constexpr std::string_view kWithParameters[] = {"LeakyRelu",       "Elu",  "HardSigmoid", "Selu",
                                                         "ThresholdedRelu", "Celu", "Swish",       "Softmax"};
  const std::vector<double> list = c.reals("activation_params");
  if (name == "Clip") {
    if (list.size() != 2)
      fail(Code::BadNode, fmt::format("expected 2 entries in 'activation_params', got {}", list.size()));
    return c.b.clip(x, c.b.scalarLike(x, list[0]), c.b.scalarLike(x, list[1]));
  }
  const bool plain = std::find(std::begin(kPlain), std::end(kPlain), name) != std::end(kPlain);
  if (!plain && std::find(std::begin(kWithParameters), std::end(kWithParameters), name) == std::end(kWithParameters))
    fail(Code::UnsupportedFeature, fmt::format("the activation '{}' is not supported", name),
         "let the exporter write the activation as a node of its own");
  Node node;
  node.name = c.node.name;
  node.opType = name;
  node.outputs = {"y"};
  if (!plain) {
    static constexpr std::string_view kNames[] = {"alpha", "beta", "gamma"};
    for (size_t i = 0; i < std::size(kNames); ++i) {
      const std::string spelled = "activation_" + std::string(kNames[i]);
      if (c.hasAttr(spelled))
        node.attributes.push_back(floatAttribute(kNames[i], c.real(spelled)));
      else if (i < list.size())
        node.attributes.push_back(floatAttribute(kNames[i], list[i]));
    }
    if (c.hasAttr("activation_axis")) node.attributes.push_back(intAttribute("axis", c.integer("activation_axis")));
  }
  constexpr int64_t kOpset = 24;
  return c.standard(node, kOpset, {Imported::of(x)}).front().tensor;
}

std::vector<Value> splitLast(Builder& b, Value x, int64_t count) {
  const int64_t axis = x.rank() - 1;
  if (axis < 0 || x.dim(static_cast<int>(axis)) % count != 0)
    fail(Code::BadNode, fmt::format("expected a last axis that divides into {}, got {}", count, x.type().text()));
  const int64_t width = x.dim(static_cast<int>(axis)) / count;
  std::vector<Value> pieces;
  for (int64_t i = 0; i < count; ++i) pieces.push_back(sliced(b, x, axis, i * width, width));
  return pieces;
}

}  // namespace aglow::onnx
