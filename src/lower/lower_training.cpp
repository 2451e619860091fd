// Training: what a regression is without gradients, and the arithmetic of optimizers.
#include "graph/op_views.h"
#include "graph/wide.h"
#include "lower/rules.h"

namespace aglow::lowering {

namespace {

// The operands of an optimizer in f32 or wider, and the arithmetic that they share.
class Update {
public:
  Update(Builder& builder, Node& node) : b(builder), node_(node) {
    const double decay = node.attrs().real("decay");
    gradient = in(1);
    if (decay != 0) gradient = b.add(gradient, scaled(in(0), decay));
  }

  Value in(int i) { return widened(b, node_.input(i)); }
  Value scaled(Value x, double by) { return b.mul(x, b.scalarLike(x, by)); }
  // The running mean of x, with weight `kept` for what was.
  Value blended(Value old, double kept, Value x) { return b.add(scaled(old, kept), scaled(x, 1 - kept)); }
  // The variable after a step against `direction`.
  Value stepped(Value rate, Value direction) { return b.sub(in(0), b.mul(rate, direction)); }
  std::vector<Value> results(std::vector<Value> values) {
    for (Value& v : values) v = b.casted(v, node_.type().kind());
    return values;
  }

  Builder& b;
  Value gradient;

private:
  Node& node_;
};

}  // namespace

std::vector<Value> regression(Builder&, Node& node) { return {node.input(0)}; }

std::vector<Value> sgd(Builder& b, Node& node) {
  Update u(b, node);
  return u.results({u.stepped(u.in(2), u.gradient)});
}

std::vector<Value> momentum(Builder& b, Node& node) {
  const MomentumNode v(node);
  Update u(b, node);
  const Value velocity = b.add(u.scaled(u.in(2), v.alpha()), b.mul(u.in(4), u.gradient));
  const Value direction = v.nesterov() ? b.add(u.gradient, u.scaled(velocity, v.alpha())) : velocity;
  return u.results({u.stepped(u.in(3), direction), velocity});
}

std::vector<Value> adam(Builder& b, Node& node) {
  const AdamNode v(node);
  Update u(b, node);
  const Value mean = u.blended(u.in(2), v.alpha(), u.gradient);
  const Value square = u.blended(u.in(3), v.beta(), b.mul(u.gradient, u.gradient));
  const Value root = b.add(b.sqrt(square), u.in(5));
  return u.results({u.stepped(u.in(4), b.div(mean, root)), mean, square});
}

std::vector<Value> rmsProp(Builder& b, Node& node) {
  const RMSPropNode v(node);
  Update u(b, node);
  const Value square = u.blended(u.in(2), v.beta(), b.mul(u.gradient, u.gradient));
  const Value root = b.add(b.sqrt(square), b.scalarLike(square, v.epsilon()));
  return u.results({u.stepped(u.in(3), b.div(u.gradient, root)), square});
}

std::vector<Value> adagrad(Builder& b, Node& node) {
  const AdagradNode v(node);
  Update u(b, node);
  const Value squares = b.add(u.in(2), b.mul(u.gradient, u.gradient));
  const Value root = b.add(b.sqrt(squares), b.scalarLike(squares, v.epsilon()));
  return u.results({u.stepped(u.in(3), b.div(u.gradient, root)), squares});
}

}  // namespace aglow::lowering
