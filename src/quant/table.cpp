#include "quant/table.h"

#include <unordered_map>

#include "graph/op_views.h"

namespace aglow::quant {

namespace {

struct Table {
  Value integers, scales;
};

Table tableOf(Builder& b, const Constant& constant, int axis, const Schema& schema) {
  Weights weights = quantizeWeights(constant.tensor(), axis, schema);
  std::vector<int64_t> along(static_cast<size_t>(constant.type().rank()), 1);
  along[static_cast<size_t>(axis)] = constant.type().dim(axis);
  const Type scales(ElemKind::Float32, Shape(along));
  return {b.constant(std::move(weights.integers), constant.name()),
          b.constant(Tensor::fromDoubles(scales, {weights.scales.begin(), weights.scales.end()}))};
}

}  // namespace

void quantizeTables(Builder& b, std::span<Node* const> gathers, const Schema& schema) {
  std::unordered_map<const Node*, std::unordered_map<int64_t, Table>> known;  // by the constant and the axis
  for (Node* node : gathers) {
    const GatherNode gather(*node);
    const Constant& constant = *asConstant(gather.data());
    if (!isFinite(constant.tensor())) continue;
    const int64_t axis = gather.axis();
    const auto [it, isNew] = known[&constant].try_emplace(axis);
    if (isNew) it->second = tableOf(b, constant, static_cast<int>(axis), schema);
    b.before(node).named(node->name());
    const Value integers = b.gather(it->second.integers, gather.indices(), {.axis = axis});
    const Value scales = b.gather(it->second.scales, gather.indices(), {.axis = axis});
    replaceAllUses(node->result(), b.mul(b.casted(integers, ElemKind::Float32), scales));
    b.function().erase(node);
  }
}

}  // namespace aglow::quant
