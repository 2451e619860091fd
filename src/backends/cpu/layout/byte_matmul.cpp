// The pass that makes products of bytes of those by matrices of i32 that are bytes and a shift each, known when code
// runs: those of attention, where both operands are computed.
#include <algorithm>

#include "backends/cpu/layout/bytes.h"
#include "backends/cpu/layout/layout.h"
#include "graph/builder.h"

namespace aglow {

namespace {

constexpr int64_t kMostOffset = 255;

// The bytes of an operand where it lies in the graph, and the one of them that is zero, also after signed ones have
// become unsigned.
struct Operand {
  ShiftedBytes bytes;
  int64_t offset = 0;
};

std::optional<Operand> operandOf(Value v) {
  const std::optional<ShiftedBytes> bytes = shiftedBytes(unmoved(v));
  const std::optional<int64_t> shift = bytes ? bytes->known() : std::nullopt;
  if (!shift) return std::nullopt;
  const int64_t offset = -*shift, most = kMostOffset - (bytes->bytes.kind() == ElemKind::Int8 ? kSignedShift : 0);
  if (offset < -kMostOffset || offset > most) return std::nullopt;
  return Operand{*bytes, offset};
}

// Whether the leading axes are the same, or so few that kernels step through each of them.
bool hasFewAxes(const Node& product) {
  constexpr int kMostRank = 5;
  const Shape &a = product.input(0).shape(), &b = product.input(1).shape();
  const auto same = [&] {
    return a.rank() == b.rank() && std::equal(a.dims().begin(), a.dims().end() - 2, b.dims().begin());
  };
  return product.type().rank() <= kMostRank || same();
}

bool isProduct(const Node& node) {
  return node.op() == Op::MatMul && !node.predicate() && node.type().kind() == ElemKind::Int32 && hasFewAxes(node) &&
         operandOf(node.input(0)) && operandOf(node.input(1));
}

// Columns that lie side by side before they are transposed are taken from there.
struct RightSide {
  Value bytes;
  bool transposed = false;
};

RightSide rightSide(Builder& b, Value bytes) {
  const bool moves = !bytes.node->isStorage() && bytes.node->op() == Op::Transpose && !bytes.node->predicate();
  if (!moves) return {bytes};
  const Value from = bytes.node->input(0);
  std::vector<int64_t> perm = bytes.node->attrs().ints("perm");
  if (perm[perm.size() - 2] != from.rank() - 1) return {bytes};
  std::swap(perm[perm.size() - 2], perm.back());
  return {std::is_sorted(perm.begin(), perm.end()) ? from : b.transposed(from, perm), true};
}

Result<bool> byteProducts(Function& function, PassContext& context) {
  std::vector<Node*> found;
  for (const auto& node : function.nodes())
    if (isProduct(*node)) found.push_back(node.get());
  for (Node* product : found) {
    Builder b(function);
    b.before(product).named(product->name());
    AGLOW_OK(building([&] {
      const Operand left = *operandOf(product->input(0)), right = *operandOf(product->input(1));
      const int64_t more = left.bytes.bytes.kind() == ElemKind::Int8 ? kSignedShift : 0;
      const Value a = movedAs(b, product->input(0), unsignedBytes(b, left.bytes.bytes));
      const RightSide side = rightSide(b, movedAs(b, product->input(1), right.bytes.bytes));
      replaceAllUses(
          product->result(),
          b.byteMatMul(a, side.bytes,
                       {.aOffset = left.offset + more, .bOffset = right.offset, .transposed = side.transposed}));
      return true;
    }));
    function.erase(product);
  }
  context.count("byte-products", std::ssize(found));
  return !found.empty();
}

}  // namespace

Pass byteProductsPass() {
  return {.name = "byte-products",
          .doc = "Multiplies matrices of bytes as they are, where both are known when code runs.",
          .run = byteProducts};
}

}  // namespace aglow
