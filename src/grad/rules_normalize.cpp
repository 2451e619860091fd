// Gradients that their results already hold most of.
#include "grad/rules.h"
#include "graph/op_views.h"
#include "graph/wide.h"
#include "ops/axes.h"

namespace aglow::grad {

std::vector<Value> softmax(const Backward& s) {
  Builder& b = s.b;
  const int64_t axis = axisFromFront(SoftmaxNode(s.node).axis(), s.in(0).rank());
  const Value y = widened(b, s.node.result()), g = widened(b, s.dy[0]);
  const Value mean = b.reduced(b.mul(g, y), "sum", {axis});
  return {b.casted(b.mul(y, b.sub(g, mean)), s.in(0).kind())};
}

std::vector<Value> logSoftmax(const Backward& s) {
  Builder& b = s.b;
  const int64_t axis = axisFromFront(LogSoftmaxNode(s.node).axis(), s.in(0).rank());
  const Value y = widened(b, s.node.result()), g = widened(b, s.dy[0]);
  return {b.casted(b.sub(g, b.mul(b.exp(y), b.reduced(g, "sum", {axis}))), s.in(0).kind())};
}

// Not that of what it computes, which is x, but that of half the squared error.
std::vector<Value> regression(const Backward& s) {
  if (!s.wants(0)) return {};
  return {s.b.mul(s.dy[0], s.b.sub(s.in(0), s.in(1)))};
}

}  // namespace aglow::grad
