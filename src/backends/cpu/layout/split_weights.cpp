// The pass that makes two products of one whose weights are a little larger than signed bytes, as unsigned bytes less
// their zero point are: twice the work of a kernel of bytes is still much less than that of one for i32.
#include <algorithm>

#include "backends/cpu/layout/bytes.h"
#include "backends/cpu/layout/layout.h"
#include "graph/builder.h"
#include "optimize/building.h"

namespace aglow {

namespace {

struct Halves {
  Tensor held, rest;  // what fits signed bytes, and what is left of each weight
};

Halves halvesOf(const Tensor& weights) {
  Halves halves{Tensor(weights.type()), Tensor(weights.type())};
  const auto* from = weights.ref().as<const int32_t>();
  auto* held = reinterpret_cast<int32_t*>(halves.held.mutableData());
  auto* rest = reinterpret_cast<int32_t*>(halves.rest.mutableData());
  for (int64_t i = 0; i < weights.type().elements(); ++i) {
    held[i] = std::clamp<int32_t>(from[i], INT8_MIN, INT8_MAX);
    rest[i] = from[i] - held[i];
  }
  return halves;
}

bool isWideProduct(const Node& node) {
  if ((node.op() != Op::Conv && node.op() != Op::MatMul) || node.predicate() || node.type().kind() != ElemKind::Int32 ||
      !shiftedBytes(unmoved(node.input(0))))
    return false;
  const Constant* weights = asConstant(node.input(1));
  constexpr int32_t kMost = 2 * INT8_MAX, kLeast = 2 * INT8_MIN;
  if (weights == nullptr || fitsSignedBytes(weights->tensor())) return false;
  const auto* values = weights->tensor().ref().as<const int32_t>();
  return std::all_of(values, values + weights->type().elements(),
                     [](int32_t value) { return value >= kLeast && value <= kMost; });
}

Result<bool> splitWeights(Function& function, PassContext& context) {
  std::vector<Node*> found;
  for (const auto& node : function.nodes())
    if (isWideProduct(*node)) found.push_back(node.get());
  Builder b(function);
  for (Node* node : found)
    AGLOW_OK(building([&] {
      const Constant& weights = *asConstant(node->input(1));
      Halves halves = halvesOf(weights.tensor());
      b.before(node).named(node->name());
      std::vector<Value> inputs = node->inputs(), rest{inputs[0], b.constant(std::move(halves.rest), weights.name())};
      inputs[1] = b.constant(std::move(halves.held), weights.name());
      rest.resize(inputs.size());  // without a bias
      const Value sum = b.add(like(b, *node, inputs), like(b, *node, rest));
      replaceAllUses(node->result(), sum);
      function.erase(node);
      return true;
    }));
  context.count("split-weights", std::ssize(found));
  return !found.empty();
}

}  // namespace

Pass splitWeightsPass() {
  return {.name = "split-weights",
          .doc = "Makes two products of one whose weights are a little larger than signed bytes.",
          .run = splitWeights};
}

}  // namespace aglow
