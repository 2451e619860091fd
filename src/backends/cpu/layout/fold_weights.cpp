// The pass that computes weights which folding left alone because they grow, such as quantized or shared ones, and
// biases that are one number. Convolutions and products read them in every run; no one else needs them.
#include <algorithm>
#include <set>

#include "backends/cpu/layout/layout.h"
#include "graph/builder.h"

namespace aglow {

namespace {

class Folding {
public:
  explicit Folding(Evaluator& evaluator) : evaluator_(evaluator) {}

  // The value of a short chain of nodes over constants. An empty tensor for everything else, where the computation
  // fails, and where it grows more than bytes do that become floats.
  Tensor valueOf(Value v) {
    constexpr int kDepth = 8;
    constexpr int64_t kGrowth = 4, kAlwaysFine = 64 << 10;
    if (!isKnown(v, kDepth) || v.type().bytes() > std::max(kAlwaysFine, kGrowth * bytes_)) return {};
    return compute(v);
  }

private:
  bool isKnown(Value v, int depth) {
    if (!v) return true;
    if (isConstant(v)) {
      bytes_ += v.type().bytes();
      return true;
    }
    if (depth == 0 || v.node->isStorage() || v.node->predicate()) return false;
    const std::vector<Value> inputs = v.node->inputs();
    return std::all_of(inputs.begin(), inputs.end(), [&](Value in) { return isKnown(in, depth - 1); });
  }

  Tensor compute(Value v) {
    if (const Constant* constant = asConstant(v)) return constant->tensor();
    std::vector<Tensor> inputs;
    for (const Value in : v.node->inputs()) {
      inputs.push_back(in ? compute(in) : Tensor());
      if (in && inputs.back().empty()) return {};
    }
    Result<std::vector<Tensor>> results = evaluator_.evaluate(*v.node, inputs);
    return results.ok() ? (*results)[static_cast<size_t>(v.index)] : Tensor();
  }

  Evaluator& evaluator_;
  int64_t bytes_ = 0;  // of the constants met
};

// What only led to a value that is known now. Large weights do not wait for the end to be freed.
void eraseUnused(Function& function, Node* node) {
  if (!node->uses().empty()) return;
  if (node->isStorage()) {
    if (isConstant(node->result())) function.module().eraseStorage(node);
    return;
  }
  const std::vector<Value> inputs = node->inputs();
  function.erase(node);
  std::set<Node*> sources;
  for (const Value in : inputs)
    if (in) sources.insert(in.node);
  for (Node* source : sources) eraseUnused(function, source);
}

Result<bool> foldWeights(Function& function, PassContext& context, std::optional<ElemKind> only) {
  int64_t folded = 0;
  for (const auto& node : function.nodes()) {
    if (node->op() != Op::Conv && node->op() != Op::MatMul) continue;
    for (int slot = 1; slot < node->inputCount(); ++slot) {
      const Value v = node->input(slot);
      if (!v || isConstant(v) || (only && v.kind() != *only)) continue;
      Tensor value = Folding(context.evaluator).valueOf(v);
      if (value.empty()) continue;
      replaceAllUses(v, function.module().addConstant(v.node->name(), std::move(value))->result());
      eraseUnused(function, v.node);
      ++folded;
    }
  }
  context.count("fold-weights", folded);
  return folded > 0;
}

}  // namespace

Pass foldWeightsPass(std::optional<ElemKind> only) {
  return {.name = "fold-weights",
          .doc = "Computes weights and biases that only constants decide.",
          .run = [only](Function& function, PassContext& context) { return foldWeights(function, context, only); }};
}

}  // namespace aglow
