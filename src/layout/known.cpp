#include "layout/known.h"

namespace aglow {

namespace {

bool movesOnly(const Node& node) { return node.op() == Op::Transpose || node.op() == Op::Reshape; }

}  // namespace

bool isKnown(Value v) {
  while (v && movesOnly(*v.node)) v = v.node->input(0);
  return v && (isConstant(v) || v.node->op() == Op::Splat);
}

Tensor knownValue(Value v, Evaluator& evaluator) {
  if (const Constant* constant = asConstant(v)) return constant->tensor();
  if (!isKnown(v)) return {};
  std::vector<Tensor> inputs;
  for (const Value in : v.node->inputs()) inputs.push_back(knownValue(in, evaluator));
  Result<std::vector<Tensor>> results = evaluator.evaluate(*v.node, inputs);
  return results.ok() ? std::move(results->front()) : Tensor();
}

}  // namespace aglow
