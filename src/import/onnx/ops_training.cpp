// Losses, and what ai.onnx.preview.training has: gradients, and optimizers, whose first steps differ from the others.
#include <fmt/format.h>

#include <functional>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

// -logs[n, target, ...] times the weight of the target's class; targets to be ignored count nothing.
Value likelihoodLoss(OpImport& c, Value logs, ElemKind kind) {
  Builder& b = c.b;
  const std::string reduction = c.word("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    fail(Code::BadNode, fmt::format("expected 'reduction' none, sum or mean, got '{}'", reduction));
  const Value target = c.in(1);
  std::vector<int64_t> expected = logs.shape().dims();
  if (expected.size() >= 2) expected.erase(expected.begin() + 1);
  if (logs.rank() < 2 || target.shape().dims() != expected)
    fail(Code::BadNode, fmt::format("expected scores [n, c, ...] and targets [n, ...], got {} and {}",
                                    logs.type().text(), target.type().text()));
  const Value labels = b.casted(target, ElemKind::Int64);
  Value index = labels, counted;
  if (c.hasAttr("ignore_index")) {
    const Value zero = b.scalar(ElemKind::Int64, 0);
    const std::vector<int64_t> ignored{c.integer("ignore_index")};
    const Value isIgnored = b.equal(labels, b.constant(Tensor::of(Type(ElemKind::Int64, Shape{}), ignored)));
    index = b.where(isIgnored, zero, labels);
    counted = b.casted(b.logicalNot(isIgnored), logs.kind());
  }
  const Value picked = b.gatherElements(logs, unsqueezed(b, index, 1), {.axis = 1});
  Value loss = b.neg(b.reshaped(picked, expected)), weights = counted;
  if (c.has(2)) {
    if (c.in(2).shape() != Shape{logs.dim(1)})
      fail(Code::BadNode, fmt::format("expected {} weights, got {}", logs.dim(1), c.in(2).type().text()));
    weights = b.gather(b.casted(c.in(2), logs.kind()), index);
    if (counted) weights = b.mul(weights, counted);
  }
  if (weights) loss = b.mul(loss, weights);
  const std::vector<int64_t> all = range(0, loss.rank());
  if (reduction == "none") return b.casted(loss, kind);
  if (reduction == "sum") return b.casted(b.reduced(loss, "sum", all, false), kind);
  if (!weights) return b.casted(b.reduced(loss, "mean", all, false), kind);
  return b.casted(b.div(b.reduced(loss, "sum", all, false), b.reduced(weights, "sum", all, false)), kind);
}

void negativeLogLikelihoodLoss(OpImport& c) {
  const Value x = c.in(0);
  c.out(likelihoodLoss(c, c.b.casted(x, wideKind(x.kind())), x.kind()));
}

void softmaxCrossEntropyLoss(OpImport& c) {
  const Value x = c.in(0);
  if (x.rank() < 2) fail(Code::BadNode, fmt::format("expected scores [n, c, ...], got {}", x.type().text()));
  const Value logs = c.b.logSoftmax(c.b.casted(x, wideKind(x.kind())), {.axis = 1});
  c.out(0, likelihoodLoss(c, logs, x.kind()));
  c.out(1, c.b.casted(logs, x.kind()));
}

// From rate, step and the tensors of one variable (itself, its gradient, the optimizer's own) to the new ones.
using Update = std::function<std::vector<Value>(Builder& b, Value rate, Value step, const std::vector<Value>& v)>;

// Inputs: rate, step, then all variables, all gradients, all of each state; outputs the same without gradients.
void optimize(OpImport& c, int tensors, const Update& update) {
  Builder& b = c.b;
  const int count = (c.inputs() - 2) / tensors;
  if (c.inputs() < 2 + tensors || (c.inputs() - 2) % tensors != 0)
    fail(Code::BadNode, fmt::format("expected 2 inputs and {} for each variable, got {}", tensors, c.inputs()));
  const Value rate = asScalar(b, c.in(0), "R"), step = asScalar(b, c.in(1), "T");
  for (int i = 0; i < count; ++i) {
    std::vector<Value> values;
    for (int k = 0; k < tensors; ++k) values.push_back(c.in(2 + k * count + i));
    for (const Value v : values)
      if (v.type() != values.front().type() || !isFloat(v.kind()))
        fail(Code::BadNode, fmt::format("expected tensors of floats and one type for a variable, got {} and {}",
                                        values.front().type().text(), v.type().text()));
    const ElemKind kind = values.front().kind();
    const std::vector<Value> results = update(b, b.casted(rate, kind), b.casted(step, kind), values);
    for (size_t k = 0; k < results.size(); ++k) c.out(static_cast<int>(k) * count + i, results[k]);
  }
}

// What ONNX calls norm_coefficient.
double decayOf(const OpImport& c) { return c.real("norm_coefficient", 0); }

// One value before the first step, another one after it.
Value sinceFirst(Builder& b, Value step, Value first, Value later) {
  return b.where(b.less(b.scalarLike(step, 0), step), later, first);
}

std::vector<Value> resultsOf(aglow::Node* node) {
  std::vector<Value> results;
  for (int i = 0; i < node->resultCount(); ++i) results.push_back(node->result(i));
  return results;
}

void adagrad(OpImport& c) {
  optimize(c, 3, [&c](Builder& b, Value rate, Value step, const std::vector<Value>& v) {
    const Value slowed = b.add(b.mul(step, b.scalarLike(step, c.real("decay_factor", 0))), b.scalarLike(step, 1));
    return resultsOf(
        b.adagrad(v[0], v[1], v[2], b.div(rate, slowed), {.epsilon = c.real("epsilon", 1e-6), .decay = decayOf(c)}));
  });
}

void adam(OpImport& c) {
  const double alpha = c.real("alpha", 0.9), beta = c.real("beta", 0.999);
  optimize(c, 4, [&](Builder& b, Value rate, Value step, const std::vector<Value>& v) {
    // The first steps know little of the past.
    const auto missing = [&](double factor) {
      return b.sub(b.scalarLike(step, 1), b.pow(b.scalarLike(step, factor), step));
    };
    const Value corrected = b.div(b.mul(rate, b.sqrt(missing(beta))), missing(alpha));
    std::vector<Value> results = resultsOf(b.adam(v[0], v[1], v[2], v[3], sinceFirst(b, step, rate, corrected),
                                                  b.scalarLike(rate, c.real("epsilon", 1e-6)),
                                                  {.alpha = alpha, .beta = beta, .decay = decayOf(c)}));
    results[0] = b.mul(results[0], b.scalarLike(rate, 1 - c.real("norm_coefficient_post", 0)));
    return results;
  });
}

void momentum(OpImport& c) {
  const std::string mode = c.word("mode");
  if (mode != "standard" && mode != "nesterov")
    fail(Code::BadNode, fmt::format("expected 'mode' standard or nesterov, got '{}'", mode));
  optimize(c, 3, [&](Builder& b, Value rate, Value step, const std::vector<Value>& v) {
    const Value share = sinceFirst(b, step, b.scalarLike(step, 1), b.scalarLike(step, c.real("beta")));
    return resultsOf(b.momentum(v[0], v[1], v[2], rate, share,
                                {.alpha = c.real("alpha"), .decay = decayOf(c), .nesterov = mode == "nesterov"}));
  });
}

// The value to differentiate, which is named, stands after the inputs (gradient_names.h).
void gradient(OpImport& c) {
  const std::string what = c.word("y");
  const std::vector<std::string> xs = c.words("xs");
  std::vector<std::string> names = xs;
  for (std::string& name : c.words("zs")) names.push_back(std::move(name));
  if (names != c.node.inputs)
    fail(Code::UnsupportedFeature,
         "gradients at other values than those of the model are not supported: the inputs have to be the tensors that "
         "'xs' and 'zs' name");
  const Value y = c.in(c.inputs() - 1);
  for (int i = 0; i < static_cast<int>(xs.size()); ++i) {
    if (!c.wants(i)) continue;
    if (isConstant(c.in(i)))
      fail(Code::UnsupportedFeature,
           fmt::format("the gradient of '{}' by '{}' is not supported: its value is part of the program", what,
                       xs[static_cast<size_t>(i)]));
    c.out(i, c.b.gradient(y, c.in(i)));
  }
}

}  // namespace

std::span<const OpRow> trainingRows() {
  static constexpr std::string_view kTraining = "ai.onnx.preview.training";
  static constexpr OpRow rows[] = {
      {"NegativeLogLikelihoodLoss", negativeLogLikelihoodLoss, 12},
      {"SoftmaxCrossEntropyLoss", softmaxCrossEntropyLoss, 12},
      {"Adagrad", adagrad, 1, INT64_MAX, kTraining},
      {"Adam", adam, 1, INT64_MAX, kTraining},
      {"Gradient", gradient, 1, INT64_MAX, kTraining},
      {"Momentum", momentum, 1, INT64_MAX, kTraining},
  };
  return rows;
}

}  // namespace aglow::onnx
