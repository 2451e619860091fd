// The pass that hands 3x3 convolutions to Winograd's method, their filters transformed, channels left where they are.
#include <algorithm>

#include "backends/winograd.h"
#include "graph/builder.h"
#include "graph/op_views.h"
#include "optimize/passes.h"

namespace aglow {

namespace {

// The tile of results; 0: leave it.
int tileOf(Node& node) {
  if (node.op() != Op::Conv || node.predicate() || node.type().kind() != ElemKind::Float32 || node.type().rank() != 4 ||
      node.type().elements() == 0 || !isConstant(node.input(1)))
    return 0;
  const ConvNode v(node);
  const auto ones = [](const std::vector<int64_t>& list) {
    return std::all_of(list.begin(), list.end(), [](int64_t number) { return number == 1; });
  };
  if (v.group() != 1 || v.filter().dim(2) != 3 || v.filter().dim(3) != 3 || !ones(v.strides()) || !ones(v.dilations()))
    return 0;
  return winogradTile(v.x().dim(1), node.type().dim(1), node.type().dim(2), node.type().dim(3));
}

void replace(Function& function, Node& node, int tile) {
  const ConvNode v(node);
  Builder b(function);
  b.before(&node).named(node.name());
  const int64_t outputs = node.type().dim(1);
  const Constant& filter = *asConstant(v.filter());
  Value y = b.winogradConv(v.x(), b.constant(winogradFilter(filter.tensor(), tile, outputs), filter.name()),
                           {.tile = tile, .pads = v.pads(), .outputs = outputs});
  if (v.bias()) y = b.add(y, b.reshaped(v.bias(), {1, outputs, 1, 1}));
  replaceAllUses(node.result(), y);
  function.erase(&node);
}

Result<bool> planarWinograd(Function& function, PassContext& context) {
  int64_t count = 0;
  for (Node* node = function.front(); node != nullptr;) {
    Node* const next = function.next(node);
    if (const int tile = tileOf(*node); tile > 0) {
      AGLOW_OK(building([&] {
        replace(function, *node, tile);
        return true;
      }));
      ++count;
    }
    node = next;
  }
  context.count(kWinograd, count);
  return count > 0;
}

}  // namespace

Pass planarWinogradPass() {
  return {.name = std::string(kWinograd),
          .doc = "Computes 3x3 convolutions by constant filters through Winograd's transforms.",
          .run = planarWinograd};
}

}  // namespace aglow
