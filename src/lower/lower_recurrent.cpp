// Recurrent layers unrolled over their steps. What all steps share is computed once: the inputs of all steps and
// directions times the weights are one product, so a step multiplies only the state.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "graph/op_views.h"
#include "graph/wide.h"
#include "lower/rules.h"
#include "ops/recurrent.h"

namespace aglow::lowering {

namespace {

constexpr int64_t kMaxSteps = 1 << 14;  // of all directions together

Value columns(Builder& b, Value x, int64_t first, int64_t count) {
  return b.slice(x, {.starts = {0, first}, .sizes = {x.dim(0), count}});
}

struct State {
  Value h, c;  // [batch, hidden]; c only of LSTM
};

// The operands that the three layers have in common, and helpers to build their steps.
class Layer {
public:
  Layer(Builder& builder, Node& node, int gateCount)
      : b(builder),
        gates(gateCount),
        steps(node.input(0).dim(0)),
        batch(node.input(0).dim(1)),
        hidden(node.input(2).dim(2)),
        directions(directionsOf(node.attrs())),
        node_(node),
        functions_(orFail(activationsOf(node.attrs()))) {
    if (steps * directions > kMaxSteps)
      fail(Code::LimitReached,
           fmt::format("{} steps are more than can be unrolled (limit {})", steps * directions, kMaxSteps));
    if (const double clip = node.attrs().real("clip"); clip > 0) {
      low_ = number(-clip);
      high_ = number(clip);
    }
  }

  Value operand(int i) { return node_.input(i) ? widened(b, node_.input(i)) : Value{}; }
  // Row d of an operand [directions, n], as a vector; empty when the operand is.
  Value rowOf(Value x, int64_t d, int64_t first, int64_t count) {
    if (!x) return {};
    return b.reshaped(b.slice(x, {.starts = {d, first}, .sizes = {1, count}}), {count});
  }
  // The state's weights of one direction for `count` gates, [hidden, count * hidden].
  Value stateWeights(int64_t d, int64_t firstGate, int64_t count) {
    const Value rows =
        b.slice(operand(2), {.starts = {d, firstGate * hidden, 0}, .sizes = {1, count * hidden, hidden}});
    return b.transposed(b.reshaped(rows, {count * hidden, hidden}), {1, 0});
  }
  Value gate(Value gatesOfStep, int64_t index) { return columns(b, gatesOfStep, index * hidden, hidden); }

  // Function `index` of a direction, and the same of an operand held by `clip`.
  Value applied(Value x, int64_t d, int index);
  Value activated(Value x, int64_t d, int index) { return applied(low_ ? b.clip(x, low_, high_) : x, d, index); }

  // Steps of all directions. `bias` [directions, gates * hidden] is added to the inputs' product; makeCell(d) gives
  // what computes a step of direction d from the step's share of that product and the state.
  using Cell = std::function<State(Value, const State&)>;
  std::vector<Value> unrolled(Value bias, Value initialC, const std::function<Cell(int64_t)>& makeCell);

  Builder& b;
  const int64_t gates, steps, batch, hidden, directions;

private:
  struct Run {
    Value y;  // [steps * batch, hidden]
    State last;
  };
  Run runDirection(Value products, int64_t d, bool reverse, State state, const Cell& cell);
  Value initial(Value x, int64_t d);
  Value number(double value) {
    const auto [it, added] = numbers_.try_emplace(value);
    if (added) it->second = b.scalar(wideKind(node_.input(0).kind()), value);
    return it->second;
  }

  Node& node_;
  std::vector<Activation> functions_;
  Value low_, high_;
  std::map<double, Value> numbers_;
};

Value Layer::applied(Value x, int64_t d, int index) {
  const Activation& f = functions_[functions_.size() / static_cast<size_t>(directions) * static_cast<size_t>(d) +
                                   static_cast<size_t>(index)];
  switch (f.kind) {
    case Activation::Kind::Relu:
      return b.relu(x);
    case Activation::Kind::Tanh:
      return b.tanh(x);
    case Activation::Kind::Sigmoid:
      return b.sigmoid(x);
    case Activation::Kind::Affine:
      return b.add(b.mul(x, number(f.alpha)), number(f.beta));
    case Activation::Kind::LeakyRelu:
      return b.leakyRelu(x, {.alpha = f.alpha});
    case Activation::Kind::ThresholdedRelu:
      return b.thresholdedRelu(x, {.alpha = f.alpha});
    case Activation::Kind::ScaledTanh:
      return b.mul(b.tanh(b.mul(x, number(f.beta))), number(f.alpha));
    case Activation::Kind::HardSigmoid:
      return b.hardSigmoid(x, {.alpha = f.alpha, .beta = f.beta});
    case Activation::Kind::Elu:
      return b.elu(x, {.alpha = f.alpha});
    case Activation::Kind::Softsign:
      return b.softsign(x);
    case Activation::Kind::Softplus:
      break;
  }
  return b.softplus(x);
}

// The state [batch, hidden] before a direction's first step.
Value Layer::initial(Value x, int64_t d) {
  if (!x) return b.splat({.elem = wideKind(node_.input(0).kind()), .shape = {batch, hidden}});
  return b.reshaped(b.slice(x, {.starts = {d, 0, 0}, .sizes = {1, batch, hidden}}), {batch, hidden});
}

Layer::Run Layer::runDirection(Value products, int64_t d, bool reverse, State state, const Cell& cell) {
  const Value lengths = node_.input(4), outer = node_.predicate();
  std::vector<Value> outputs(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t step = reverse ? steps - 1 - i : i;
    const Value input =
        b.slice(products, {.starts = {step * batch, d * gates * hidden}, .sizes = {batch, gates * hidden}});
    Value& output = outputs[static_cast<size_t>(step)];
    if (!lengths) {
      state = cell(input, state);
      output = state.h;
      continue;
    }
    // Rows that have ended skip the step's work, keep their state and give zeros. A predicate for single rows of the
    // results says nothing of the batch's.
    const Value active = b.less(b.scalar(lengths.kind(), static_cast<double>(step)), lengths);
    const Value keeps = b.reshaped(active, {batch, 1});
    b.when(outer && outer.rank() == 0 ? b.logicalAnd(outer, active) : active);
    const State next = cell(input, state);
    b.when(outer);
    output = b.where(keeps, next.h, number(0));
    state = {b.where(keeps, next.h, state.h), next.c ? b.where(keeps, next.c, state.c) : Value{}};
  }
  return {outputs.size() == 1 ? outputs.front() : b.concat(outputs, {.axis = 0}), state};
}

std::vector<Value> Layer::unrolled(Value bias, Value initialC, const std::function<Cell(int64_t)>& makeCell) {
  const ElemKind kind = node_.input(0).kind();
  const int64_t width = node_.input(0).dim(2), rows = directions * gates * hidden;
  const bool hasC = node_.resultCount() == 3;
  const Value initialH = operand(5);
  Value products;
  if (steps > 0) {
    const Value w = b.transposed(b.reshaped(operand(1), {rows, width}), {1, 0});
    products = b.matMul(b.reshaped(operand(0), {steps * batch, width}), w);
    if (bias) products = b.add(products, b.reshaped(bias, {rows}));
  }
  std::vector<Value> all, lastH, lastC;
  for (int64_t d = 0; d < directions; ++d) {
    State state{initial(initialH, d), hasC ? initial(initialC, d) : Value{}};
    if (steps > 0) {
      const bool reverse = d == 1 || node_.attrs().word("direction") == "reverse";
      const Run run = runDirection(products, d, reverse, state, makeCell(d));
      all.push_back(b.reshaped(run.y, {steps, 1, batch, hidden}));
      state = run.last;
    }
    lastH.push_back(b.reshaped(state.h, {1, batch, hidden}));
    if (hasC) lastC.push_back(b.reshaped(state.c, {1, batch, hidden}));
  }
  const auto joined = [&](const std::vector<Value>& parts, int64_t axis) {
    return b.casted(parts.size() == 1 ? parts.front() : b.concat(parts, {.axis = axis}), kind);
  };
  std::vector<Value> results{
      steps > 0 ? joined(all, 1) : b.splat({.elem = kind, .shape = node_.type(0).shape().dims()}), joined(lastH, 0)};
  if (hasC) results.push_back(joined(lastC, 0));
  return results;
}

// Both halves of the biases added up, [directions, gates * hidden].
Value summedBias(Layer& layer) {
  const Value bias = layer.operand(3);
  if (!bias) return {};
  const int64_t half = layer.gates * layer.hidden;
  return layer.b.add(columns(layer.b, bias, 0, half), columns(layer.b, bias, half, half));
}

}  // namespace

std::vector<Value> rnn(Builder& b, Node& node) {
  Layer layer(b, node, 1);
  return layer.unrolled(summedBias(layer), {}, [&](int64_t d) -> Layer::Cell {
    const Value r = layer.stateWeights(d, 0, 1);
    return [&layer, &b, d, r](Value input, const State& s) -> State {
      return {layer.activated(b.add(input, b.matMul(s.h, r)), d, 0), {}};
    };
  });
}

std::vector<Value> gru(Builder& b, Node& node) {
  Layer layer(b, node, 3);
  const bool linearFirst = GRUNode(node).linearBeforeReset();
  const int64_t hidden = layer.hidden;
  const Value biases = layer.operand(3);
  Value bias = summedBias(layer);
  // The state's part of the last gate passes the reset gate together with its bias.
  if (biases && linearFirst)
    bias = b.concat({columns(b, bias, 0, 2 * hidden), columns(b, biases, 2 * hidden, hidden)}, {.axis = 1});

  return layer.unrolled(bias, {}, [&](int64_t d) -> Layer::Cell {
    const Value weights = layer.stateWeights(d, 0, linearFirst ? 3 : 2);
    const Value last = linearFirst ? Value{} : layer.stateWeights(d, 2, 1);
    const Value lastBias = linearFirst ? layer.rowOf(biases, d, 5 * hidden, hidden) : Value{};
    return [&layer, &b, d, weights, last, lastBias, hidden](Value input, const State& s) -> State {
      const Value product = b.matMul(s.h, weights);
      const Value gates = b.add(columns(b, input, 0, 2 * hidden), last ? product : columns(b, product, 0, 2 * hidden));
      const Value z = layer.activated(layer.gate(gates, 0), d, 0);
      const Value r = layer.activated(layer.gate(gates, 1), d, 0);
      Value seen;
      if (last) {
        seen = b.matMul(b.mul(r, s.h), last);
      } else {
        seen = layer.gate(product, 2);
        if (lastBias) seen = b.add(seen, lastBias);
        seen = b.mul(r, seen);
      }
      const Value fresh = layer.activated(b.add(layer.gate(input, 2), seen), d, 1);
      return {b.add(fresh, b.mul(z, b.sub(s.h, fresh))), {}};
    };
  });
}

std::vector<Value> lstm(Builder& b, Node& node) {
  Layer layer(b, node, 4);
  const bool inputForget = LSTMNode(node).inputForget();
  const int64_t hidden = layer.hidden;
  const Value peepholes = layer.operand(7);
  return layer.unrolled(summedBias(layer), layer.operand(6), [&](int64_t d) -> Layer::Cell {
    const Value weights = layer.stateWeights(d, 0, 4);
    const Value pi = layer.rowOf(peepholes, d, 0, hidden), po = layer.rowOf(peepholes, d, hidden, hidden),
                pf = layer.rowOf(peepholes, d, 2 * hidden, hidden);
    return [&layer, &b, d, weights, pi, po, pf, inputForget](Value input, const State& s) -> State {
      const Value gates = b.add(input, b.matMul(s.h, weights));
      const auto seeing = [&](Value gate, Value peephole, Value c) {
        return peephole ? b.add(gate, b.mul(peephole, c)) : gate;
      };
      const Value i = layer.activated(seeing(layer.gate(gates, 0), pi, s.c), d, 0);
      const Value fresh = layer.activated(layer.gate(gates, 3), d, 1);
      Value c;
      if (inputForget) {
        c = b.add(s.c, b.mul(i, b.sub(fresh, s.c)));
      } else {
        const Value f = layer.activated(seeing(layer.gate(gates, 2), pf, s.c), d, 0);
        c = b.add(b.mul(f, s.c), b.mul(i, fresh));
      }
      const Value o = layer.activated(seeing(layer.gate(gates, 1), po, c), d, 0);
      return {b.mul(o, layer.applied(c, d, 2)), c};
    };
  });
}

}  // namespace aglow::lowering
