// The standard forms of nodes: how each says in ONNX's words what its record says in its own.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/onnx/export_ops.h"
#include "import/onnx/own_domain.h"

namespace aglow::onnx {

// One node under way.
class Form {
public:
  Form(const aglow::Node& from, ExportScope& around, Node& to) : node(from), scope(around), out(to) {}

  const aglow::Node& node;
  ExportScope& scope;
  Node& out;

  const Attrs& attrs() const { return node.attrs(); }
  const Type& in(int i) const { return node.input(i).type(); }

  void input(Value v) { out.inputs.push_back(scope.nameOf(v)); }
  void inputs() {
    for (const Value v : node.inputs()) input(v);
  }
  void ints(std::string_view what, const std::vector<int64_t>& values) { tensor(what, Tensor::ints(values)); }
  void tensor(std::string_view what, const Tensor& value) {
    out.inputs.push_back(scope.initializer(out.name + "/" + std::string(what), value));
  }

  Attribute& attribute(std::string_view name, AttributeType type) {
    Attribute a;
    a.name = name;
    a.type = type;
    out.attributes.push_back(std::move(a));
    return out.attributes.back();
  }
  void set(std::string_view name, int64_t value) { attribute(name, AttributeType::Int).i = value; }
  void set(std::string_view name, const std::string& value) { attribute(name, AttributeType::String).s = value; }
  void set(std::string_view name, const std::vector<int64_t>& value) {
    attribute(name, AttributeType::Ints).ints = value;
  }
  // False when a float does not hold the value.
  bool real(std::string_view name, double value) {
    const std::optional<float> narrow = exactFloat(value);
    if (narrow) attribute(name, AttributeType::Float).f = *narrow;
    return narrow.has_value();
  }

  bool isUsed(int result) const { return node.useCount(result) > 0; }
  std::string result(int i) const { return scope.nameOf({const_cast<aglow::Node*>(&node), i}); }
  // As many results as somebody uses.
  void results() {
    int count = node.resultCount();
    while (count > 1 && !isUsed(count - 1)) --count;
    for (int i = 0; i < count; ++i) out.outputs.push_back(result(i));
  }

  // Attributes by name, under the names that ONNX has for some. Defaults are the same on both sides.
  using Renamed = std::vector<std::pair<std::string_view, std::string_view>>;
  bool attributes(const Renamed& renamed = {});
};

// Each writes inputs, outputs and attributes, or returns false, before it has added anything to the model, if ONNX
// cannot express the node.
namespace forms {

// Operands by position, attributes by name.
bool plain(Form& f);
bool clip(Form& f);
bool remainder(Form& f);
bool shiftLeft(Form& f);
bool shiftRight(Form& f);
bool geluTanh(Form& f);
bool pRelu(Form& f);
bool cast(Form& f);
bool withShape(Form& f);
bool splat(Form& f);
bool reshape(Form& f);
bool transpose(Form& f);
bool slice(Form& f);
bool concat(Form& f);
bool pad(Form& f);
bool byTuples(Form& f);
bool reduce(Form& f);
bool argReduce(Form& f);
bool scan(Form& f);
bool topK(Form& f);
bool conv(Form& f);
bool col2Im(Form& f);
bool pool(Form& f);
bool resize(Form& f);
bool batchNorm(Form& f);
bool lrn(Form& f);
bool instanceNorm(Form& f);
bool groupNorm(Form& f);
bool layerNorm(Form& f);
bool rmsNorm(Form& f);
bool quantizeLinear(Form& f);
bool dequantizeLinear(Form& f);
bool attention(Form& f);
bool recurrent(Form& f);

}  // namespace forms

}  // namespace aglow::onnx
