#include "quant/narrow.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "graph/builder.h"
#include "quant/islands.h"
#include "support/sizes.h"

namespace aglow::quant {

namespace {

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

struct Blocks {
  Tensor levels, scales, offsets;
};

// Offset in the middle; the largest magnitude on either side decides a scale.
Blocks inBlocks(const Tensor& weights, int bits, int64_t block) {
  const int64_t k = weights.type().dim(0), n = weights.type().dim(1), blocks = ceilDiv(k, block);
  const int64_t middle = int64_t{1} << (bits - 1);
  const auto* from = weights.ref().as<const float>();
  std::vector<int64_t> levels(static_cast<size_t>(k * n));
  std::vector<double> scales(static_cast<size_t>(blocks * n));
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t j = 0; j < n; ++j) {
      const int64_t last = std::min((b + 1) * block, k);
      double low = 0, high = 0;
      for (int64_t c = b * block; c < last; ++c) {
        low = std::min(low, double{from[c * n + j]});
        high = std::max(high, double{from[c * n + j]});
      }
      const double needed = std::max(high / static_cast<double>(middle - 1), -low / static_cast<double>(middle));
      // Zeros alone, and numbers so small that their scale is none, become zeros.
      const float scale = std::isnormal(static_cast<float>(needed)) ? static_cast<float>(needed) : 1.0f;
      scales[static_cast<size_t>(b * n + j)] = double{scale};
      for (int64_t c = b * block; c < last; ++c) {
        const double level = std::nearbyint(double{from[c * n + j]} / double{scale});
        levels[static_cast<size_t>(c * n + j)] = middle + std::clamp(static_cast<int64_t>(level), -middle, middle - 1);
      }
    }
  const ElemKind kind = bits == 4 ? ElemKind::UInt4 : ElemKind::UInt8;
  const Shape shape{blocks, n};
  return {
      .levels = Tensor::fromInts(Type(kind, weights.type().shape()), levels),
      .scales = Tensor::fromDoubles(Type(ElemKind::Float32, shape), scales),
      .offsets = Tensor::fromInts(Type(kind, shape), std::vector<int64_t>(static_cast<size_t>(blocks * n), middle))};
}

bool isFinite(const Tensor& weights) {
  const auto* from = weights.ref().as<const float>();
  return std::all_of(from, from + weights.type().elements(), [](float value) { return std::isfinite(value); });
}

}  // namespace

Result<bool> useHalves(Function& function, const Names& keepFloat) {
  const std::vector<Node*> products = productsOf(function, keepFloat);
  return building([&] {
    Builder b(function);
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
    return !products.empty();
  });
}

Result<bool> quantizeWeightsOnly(Function& function, const Names& keepFloat, int bits) {
  constexpr int64_t kBlock = 32;
  std::unordered_map<const Node*, Value> weights;  // by the constant
  return building([&] {
    Builder b(function);
    for (Node* product : productsOf(function, keepFloat)) {
      if (product->op() != Op::MatMul) continue;
      const Constant& constant = *asConstant(product->input(1));
      if (constant.type().elements() == 0 || !isFinite(constant.tensor())) continue;
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
