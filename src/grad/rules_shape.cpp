// Gradients of operators that move elements: each goes back to where it came from.
#include "grad/rules.h"
#include "grad/shapes.h"
#include "graph/op_views.h"
#include "ops/axes.h"

namespace aglow::grad {

std::vector<Value> cast(const Backward& s) { return {s.b.casted(s.dy[0], s.in(0).kind())}; }

std::vector<Value> reshape(const Backward& s) { return {s.b.reshaped(s.dy[0], s.in(0).shape().dims())}; }

std::vector<Value> transpose(const Backward& s) {
  return {s.b.transposed(s.dy[0], inverse(TransposeNode(s.node).perm()))};
}

std::vector<Value> slice(const Backward& s) {
  const SliceNode v(s.node);
  return {placed(s.b, s.dy[0], v.x().type(), v.starts(), filled(v.steps(), v.x().rank(), 1))};
}

std::vector<Value> concat(const Backward& s) {
  const int64_t axis = ConcatNode(s.node).axis();
  std::vector<Value> parts;
  SliceAttrs cut{.starts = std::vector<int64_t>(static_cast<size_t>(s.dy[0].rank()), 0)};
  for (int i = 0; i < s.node.inputCount(); ++i) {
    cut.sizes = s.in(i).shape().dims();
    parts.push_back(s.wants(i) ? s.b.slice(s.dy[0], cut) : Value{});
    cut.starts[static_cast<size_t>(axis)] += s.in(i).dim(static_cast<int>(axis));
  }
  return parts;
}

std::vector<Value> pad(const Backward& s) {
  const PadNode v(s.node);
  Builder& b = s.b;
  Value dx, dvalue;
  if (s.wants(0)) dx = b.slice(s.dy[0], {.starts = v.before(), .sizes = v.x().shape().dims()});
  if (s.wants(1)) {
    const Value around =
        b.pad(zeros(b, v.x().type()), b.scalarLike(v.value(), 1), {.before = v.before(), .after = v.after()});
    dvalue = summedTo(b, b.mul(s.dy[0], around), Shape{});
  }
  return {dx, dvalue};
}

}  // namespace aglow::grad
