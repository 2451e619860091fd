// The pass that packs weights of a few bits, which products of few rows read at the speed of memory: fewer bits, less
// time. Products of many rows compute with floats, which are made of such weights while compiling.
#include <algorithm>

#include "backends/cpu/kernels/gemm/matvec_desc.h"
#include "backends/cpu/kernels/gemm/pack.h"
#include "backends/cpu/layout/block_weights.h"
#include "backends/cpu/layout/layout.h"
#include "graph/builder.h"
#include "ops/axes.h"
#include "support/sizes.h"

namespace aglow {

namespace {

constexpr int64_t kWordBits = 32, kByteBits = 8;

// A DequantizeLinear, and what it says of blocks.
struct Dequantized {
  Value x, scale, offset;
  int64_t axis, blockSize, bits;

  explicit Dequantized(const Node& node)
      : x(node.input(0)),
        scale(node.input(1)),
        offset(node.input(2)),
        axis(axisFromFront(node.attrs().integer("axis"), std::max(x.rank(), 1))),
        blockSize(node.attrs().integer("block_size")),
        bits(elemInfo(x.kind()).bits <= 4 ? 4 : kByteBits) {}

  int64_t together() const { return kWordBits / bits; }
  // Rows of a block; all of them where a column has one scale.
  int64_t block() const { return blockSize > 0 ? blockSize : alignUp(std::max<int64_t>(x.dim(0), 1), together()); }
};

bool readsAsFewRows(const Use& use) {
  const Node& user = *use.user;
  if (user.op() != Op::MatMul || use.slot != 1 || user.predicate()) return false;
  const Value a = user.input(0);
  return a.rank() >= 2 && user.type().elements() > 0 && a.type().elements() / a.dim(a.rank() - 1) <= cpu::kMatVecRows;
}

// A parameter for each block and column, in panels.
Tensor packParameters(const Tensor& values, int64_t blocks, int64_t n, int64_t panel) {
  const std::vector<double> from = values.doubles();
  Tensor whole(Type(ElemKind::Float32, Shape{blocks, n}));
  auto* to = reinterpret_cast<float*>(whole.mutableData());
  for (int64_t i = 0; i < blocks * n; ++i) {
    const auto count = static_cast<int64_t>(from.size());
    to[i] = static_cast<float>(from[static_cast<size_t>(count == blocks * n ? i : count == 1 ? 0 : i % n)]);
  }
  return cpu::packMatrix(whole, panel);
}

struct Packed {
  Value levels, scales, offsets;
  int64_t n, bits, block;
};

// Signed levels and their offsets are raised alike, so that no level is negative.
Packed pack(const Dequantized& d, Builder& b, int64_t panel) {
  const Type& type = d.x.type();
  const int64_t k = type.dim(0), n = type.dim(1), block = d.block(), blocks = ceilDiv(k, block);
  const int64_t raised = isUnsigned(type.kind()) ? 0 : int64_t{1} << (elemInfo(type.kind()).bits - 1);
  Tensor levels(Type(ElemKind::UInt8, type.shape()));
  const std::vector<int64_t> integers = asConstant(d.x)->tensor().toInts();
  std::transform(integers.begin(), integers.end(), reinterpret_cast<uint8_t*>(levels.mutableData()),
                 [&](int64_t level) { return static_cast<uint8_t>(level + raised); });
  std::vector<double> offsets = d.offset ? asConstant(d.offset)->tensor().doubles() : std::vector<double>{0};
  for (double& offset : offsets) offset += static_cast<double>(raised);
  const bool same = std::all_of(offsets.begin(), offsets.end(), [&](double o) { return o == offsets.front(); });
  const Tensor known = Tensor::fromDoubles(Type(ElemKind::Float32, Shape{std::ssize(offsets)}), offsets);
  return {.levels = b.constant(cpu::packLevels(levels, d.bits, panel), d.x.node->name()),
          .scales = b.constant(packParameters(asConstant(d.scale)->tensor(), blocks, n, panel)),
          .offsets = same ? b.constant(Tensor::fromDoubles(Type(ElemKind::Float32, Shape{1}), {offsets.front()}))
                          : b.constant(packParameters(known, blocks, n, panel)),
          .n = n,
          .bits = d.bits,
          .block = block};
}

Result<bool> packBlocks(Function& function, PassContext& context, int64_t panel) {
  std::vector<Node*> found;
  for (const auto& node : function.nodes())
    if (isBlockWeights(*node)) found.push_back(node.get());
  Builder b(function);
  for (Node* node : found) {
    AGLOW_OK(building([&] {
      b.before(node).named(node->name());
      const Packed packed = pack(Dequantized(*node), b, panel);
      for (const Use& use : std::vector<Use>(node->uses())) {
        Node* product = use.user;
        b.before(product).named(product->name());
        const Value y = b.blockMatMul(product->input(0), packed.levels, packed.scales, packed.offsets,
                                      {.n = packed.n, .bits = packed.bits, .block = packed.block});
        replaceAllUses(product->result(), b.reshaped(y, product->type().shape().dims()));
        function.erase(product);
      }
      return true;
    }));
    const std::vector<Value> inputs = node->inputs();
    function.erase(node);
    // Large weights do not wait for the end to be freed.
    for (const Value in : inputs)
      if (in && in.node->uses().empty()) function.module().eraseStorage(in.node);
  }
  context.count("pack-blocks", std::ssize(found));
  return !found.empty();
}

}  // namespace

bool isBlockWeights(const Node& node) {
  if (node.isStorage() || node.op() != Op::DequantizeLinear || node.predicate()) return false;
  const Dequantized d(node);
  const auto known = [](Value v) { return !v || isConstant(v); };
  if (node.type().kind() != ElemKind::Float32 || d.x.rank() != 2 || d.x.type().elements() == 0 ||
      !isInteger(d.x.kind()) || elemInfo(d.x.kind()).bits > kByteBits || d.scale.kind() != ElemKind::Float32 ||
      !known(d.x) || !known(d.scale) || !known(d.offset))
    return false;
  const bool perColumn = d.scale.type().elements() == 1 || d.axis == 1;
  if (d.blockSize == 0 ? !perColumn : d.axis != 0 || d.blockSize % d.together() != 0) return false;
  return !node.uses().empty() && std::all_of(node.uses().begin(), node.uses().end(), readsAsFewRows);
}

Pass packBlocksPass(const VectorLayout& layout) {
  return {.name = "pack-blocks",
          .doc = "Packs weights of a few bits for products of few rows.",
          .run = [panel = 2 * layout.lanes](Function& function, PassContext& context) {
            return packBlocks(function, context, panel);
          }};
}

}  // namespace aglow
