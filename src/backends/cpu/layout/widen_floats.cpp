// The pass that has convolutions, products and pools of narrow floats computed in f32, which is what their kernels
// compute in: the fast ones serve them as well. What is computed of their results goes on in f32 too, and is rounded
// where it leaves: to round between all operators would cost time to lose precision.
#include <algorithm>
#include <unordered_map>

#include "backends/cpu/layout/layout.h"
#include "graph/builder.h"
#include "ops/steady.h"

namespace aglow {

namespace {

bool isNarrow(Value v) { return v && (v.kind() == ElemKind::Float16 || v.kind() == ElemKind::BFloat16); }

bool hasFastKernel(const Node& node) {
  return (node.op() == Op::Conv && isConstant(node.input(1))) || node.op() == Op::MatMul || node.op() == Op::MaxPool ||
         node.op() == Op::AvgPool;
}

class Widening {
public:
  Widening(Function& function, Evaluator& evaluator) : function_(function), b_(function), evaluator_(evaluator) {}

  Result<int64_t> run() {
    int64_t widened = 0;
    for (Node* node = function_.front(); node != nullptr;) {
      Node* next = function_.next(node);
      if (isToWiden(*node)) {
        AGLOW_OK(building([&] {
          widen(node);
          return true;
        }));
        ++widened;
      }
      node = next;
    }
    return widened;
  }

private:
  // What changes little where its operands do goes on with what is there in f32. All else takes what was rounded, and
  // agrees with other backends.
  bool goesOn(const Node& node) const {
    const std::vector<Value> inputs = node.inputs();
    return isSteady(node.op()) &&
           std::any_of(inputs.begin(), inputs.end(), [&](Value in) { return in && wide_.contains(in.node); });
  }

  bool isToWiden(Node& node) const {
    if (node.op() == Op::Cast || node.op() == Op::Save || node.predicate() || node.resultCount() == 0) return false;
    for (int i = 0; i < node.resultCount(); ++i)
      if (!isNarrow(node.result(i))) return false;
    return hasFastKernel(node) || goesOn(node);
  }

  void widen(Node* node) {
    b_.before(node).named(node->name());
    std::vector<Value> inputs = node->inputs();
    for (Value& in : inputs)
      if (isNarrow(in)) in = inFloat32(in);
    Node* wide = b_.make(inputs, node->attrs());
    for (int i = 0; i < node->resultCount(); ++i) {
      const Value rounded = b_.casted(wide->result(i), node->result(i).kind());
      replaceAllUses(node->result(i), rounded);
      wide_[rounded.node] = wide->result(i);
    }
    function_.erase(node);
  }

  // Constants are converted here: kernels know the bounds and factors that are numbers.
  Value inFloat32(Value v) {
    if (const auto it = wide_.find(v.node); it != wide_.end()) return it->second;
    const Value wide = b_.casted(v, ElemKind::Float32);
    const Constant* constant = asConstant(v);
    if (constant == nullptr) return wide;
    std::vector<Tensor> converted = orFail(evaluator_.evaluate(*wide.node, std::span(&constant->tensor(), 1)));
    function_.erase(wide.node);
    return b_.constant(std::move(converted.front()), v.node->name());
  }

  Function& function_;
  Builder b_;
  Evaluator& evaluator_;
  std::unordered_map<const Node*, Value> wide_;  // by the Casts that round it: the pass has made them
};

Result<bool> widenFloats(Function& function, PassContext& context) {
  AGLOW_TRY(const int64_t widened, Widening(function, context.evaluator).run());
  context.count("widen-floats", widened);
  return widened > 0;
}

}  // namespace

Pass widenFloatsPass() {
  return {.name = "widen-floats",
          .doc = "Has convolutions, products and pools of narrow floats, and what follows them, computed in f32.",
          .run = widenFloats};
}

}  // namespace aglow
