#include "quant/narrow.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/builder.h"
#include "quant/blocks.h"
#include "quant/islands.h"
#include "quant/schema.h"

namespace aglow::quant {

namespace {

// How often a product multiplies.
int64_t multiplications(const Node& product) {
  const Type& weights = product.input(1).type();
  const int64_t results = product.type().elements(), columns = weights.dim(product.op() == Op::Conv ? 0 : 1);
  return columns == 0 ? 0 : results * (weights.elements() / columns);
}

std::vector<Node*> productsOf(Function& function, const Names& kept) {
  std::vector<Node*> products;
  for (const auto& node : function.nodes())
    if (roleOf(*node) == Role::Product && !kept.contains(node->name()) && !kept.contains(std::string(node->def().name)))
      products.push_back(node.get());
  return products;
}

// In place of a value, for all readers but outputs of the model.
void roundToHalves(Builder& b, Value value) {
  Function& function = b.function();
  const std::vector<Use> uses = value.node->uses();
  b.before(value.node->isStorage() ? function.front() : function.next(value.node)).named(value.node->name());
  const Value rounded = b.casted(b.casted(value, ElemKind::BFloat16), ElemKind::Float32);
  for (const Use& use : uses)
    if (use.slot != Use::kPredicate && use.user->function() == &function && use.user->op() != Op::Save &&
        use.user->input(use.slot) == value)
      use.user->setInput(use.slot, rounded);
}

// To nearest even; a NaN stays one.
uint32_t upperHalf(uint32_t bits) {
  constexpr uint32_t kInfinity = 0x7F800000, kSign = 0x80000000, kQuiet = 0x00400000, kUpper = 0xFFFF0000;
  constexpr uint32_t kNearlyHalf = 0x7FFF, kLast = 16;
  if ((bits & ~kSign) > kInfinity) return (bits & kUpper) | kQuiet;
  return (bits + kNearlyHalf + (bits >> kLast & 1)) & kUpper;
}

Tensor roundedToHalves(const Tensor& weights) {
  Tensor rounded(weights.type());
  const auto* from = weights.ref().as<const uint32_t>();
  std::transform(from, from + weights.type().elements(), reinterpret_cast<uint32_t*>(rounded.mutableData()), upperHalf);
  return rounded;
}

constexpr int64_t kWorth = 4096;  // fewer multiplications are done in less than a microsecond, and gain nothing

bool isFloatState(Value v) {
  while (!v.node->isStorage() && (v.node->op() == Op::Reshape || v.node->op() == Op::Transpose)) v = v.node->input(0);
  const Placeholder* place = asPlaceholder(v);
  return place != nullptr && place->isState() && v.kind() == ElemKind::Float32;
}

// Products by weights that are state; and all of them in a function that trains, gradients included.
std::vector<Node*> productsByState(Function& function, const Names& kept) {
  const std::vector<Node*> saves = function.saves();
  const bool trains = std::any_of(saves.begin(), saves.end(), [](Node* save) { return isFloatState(save->input(1)); });
  std::vector<Node*> products;
  for (const auto& node : function.nodes()) {
    if ((node->op() != Op::MatMul && node->op() != Op::Conv) || roleOf(*node) == Role::Product ||
        kept.contains(node->name()) || kept.contains(std::string(node->def().name)))
      continue;
    const Value left = node->input(0), right = node->input(1);
    if (left.kind() != ElemKind::Float32 || left.rank() < 2 || !(trains || isFloatState(right))) continue;
    const int64_t depth = node->op() == Op::MatMul ? left.dim(left.rank() - 1)
                                                   : right.type().elements() / std::max<int64_t>(right.dim(0), 1);
    if (node->type().elements() * depth >= kWorth) products.push_back(node.get());
  }
  return products;
}

// What these products read is rounded for them alone: variables, and what optimizers make of them, stay f32.
void roundOperands(Builder& b, const std::vector<Node*>& products) {
  std::unordered_map<Value, Value, ValueHash> rounded;
  for (Node* product : products)
    for (int i = 0; i < 2; ++i) {
      const Value value = product->input(i);
      Value& narrow = rounded[value];
      if (!narrow) {
        Function& function = b.function();
        b.before(value.node->isStorage() ? function.front() : function.next(value.node)).named(value.node->name());
        narrow = b.casted(b.casted(value, ElemKind::BFloat16), ElemKind::Float32);
      }
      product->setInput(i, narrow);
    }
}

}  // namespace

Result<bool> useHalves(Function& function, const Names& keepFloat) {
  std::vector<Node*> products = productsOf(function, keepFloat);
  std::erase_if(products, [](const Node* product) { return multiplications(*product) < kWorth; });
  return building([&] {
    Builder b(function);
    const std::vector<Node*> others = productsByState(function, keepFloat);
    roundOperands(b, others);
    std::unordered_map<const Node*, Value> weights;  // by the constant
    std::unordered_set<Value, ValueHash> rounded;
    for (Node* product : products) {
      const Constant& constant = *asConstant(product->input(1));
      const auto [it, isNew] = weights.try_emplace(&constant);
      if (isNew) it->second = b.constant(roundedToHalves(constant.tensor()), constant.name());
      product->setInput(1, it->second);
      const Value x = product->input(0);
      if (!isConstant(x) && rounded.insert(x).second) roundToHalves(b, x);
    }
    return !products.empty() || !others.empty();
  });
}

Result<bool> quantizeWeightsOnly(Function& function, const Names& keepFloat, int bits) {
  // Fewer bits are for weights that come from memory. Those that stay in the nearest caches are not waited for.
  constexpr int64_t kBlock = 32, kNear = int64_t{128} << 10, kFloatBytes = 4;
  std::unordered_map<const Node*, Value> weights;  // by the constant
  return building([&] {
    Builder b(function);
    for (Node* product : productsOf(function, keepFloat)) {
      if (product->op() != Op::MatMul) continue;
      const Constant& constant = *asConstant(product->input(1));
      if (constant.type().elements() * kFloatBytes <= kNear || !isFinite(constant.tensor())) continue;
      const auto [it, isNew] = weights.try_emplace(&constant);
      if (isNew) {
        const Blocks blocks = inBlocks(constant.tensor(), bits, kBlock);
        b.before(function.front()).named(constant.name());
        it->second =
            b.dequantizeLinear(b.constant(blocks.levels, constant.name()), b.constant(blocks.scales),
                               b.constant(blocks.offsets), {.axis = 0, .blockSize = kBlock, .to = ElemKind::Float32});
      }
      product->setInput(1, it->second);
    }
    return !weights.empty();
  });
}

}  // namespace aglow::quant
