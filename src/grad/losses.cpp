#include "grad/losses.h"

#include <fmt/format.h>

#include <optional>

#include "grad/shapes.h"
#include "graph/op_views.h"
#include "graph/wide.h"
#include "support/quote.h"

namespace aglow {

namespace {

// What a loss sees of the function.
struct Compared {
  Builder& b;
  Value output;  // of a wide kind
  Value target;
  int64_t axis;  // of the classes
  const grad::SettingValues& settings;

  double setting(std::string_view name) const { return settings.at(name); }
};
// One number for each element, or for each row of scores.
using LossRule = Value(const Compared& c);

Value softmaxCrossEntropy(const Compared& c) {
  Builder& b = c.b;
  std::vector<int64_t> rows = c.target.shape().dims();
  std::vector<int64_t> picked = c.output.shape().dims();
  picked[static_cast<size_t>(c.axis)] = 1;
  const Value logs = b.logSoftmax(c.output, {.axis = c.axis});
  const Value wanted = b.reshaped(b.gatherElements(logs, b.reshaped(c.target, picked), {.axis = c.axis}), rows);
  const double smoothing = c.setting("smoothing");
  const Value loss = b.neg(wanted);
  if (smoothing == 0) return loss;
  const Value even = b.neg(b.reduced(logs, "mean", {c.axis}, false));
  return b.add(b.mul(loss, b.scalarLike(loss, 1 - smoothing)), b.mul(even, b.scalarLike(even, smoothing)));
}

// The sum over the classes, as for one distribution.
Value divergence(const Compared& c) {
  const Value logs = c.b.logSoftmax(c.output, {.axis = c.axis});
  return c.b.reduced(c.b.klDivergence(logs, c.target), "sum", {c.axis}, false);
}

Value sigmoidCrossEntropy(const Compared& c) { return c.b.sigmoidCrossEntropy(c.output, c.target); }
Value squaredError(const Compared& c) { return c.b.squaredError(c.output, c.target); }
Value absoluteError(const Compared& c) { return c.b.absoluteError(c.output, c.target); }
Value huberError(const Compared& c) { return c.b.huberError(c.output, c.target, {.delta = c.setting("delta")}); }

struct Row : LossRow {
  LossRule* rule = nullptr;
  std::optional<Op> before = {};  // the operator that the loss computes itself, where the function ends with it
};

const std::vector<Row>& table() {
  static const std::vector<Row> rows{
      {{"softmax-cross-entropy", "of scores and labels", {{"axis", -1}, {"smoothing", 0}}, true},
       softmaxCrossEntropy,
       Op::Softmax},
      {{"sigmoid-cross-entropy", "of scores and probabilities", {}}, sigmoidCrossEntropy, Op::Sigmoid},
      {{"squared-error", "the square of the difference", {}}, squaredError},
      {{"absolute-error", "the size of the difference (L1)", {}}, absoluteError},
      {{"huber", "half the square up to delta, then the size", {{"delta", 1}}}, huberError},
      {{"kl-divergence", "of scores and probabilities", {{"axis", -1}}}, divergence, Op::Softmax},
  };
  return rows;
}

// The scores that a Softmax along this axis, or a Sigmoid, is computed from, also before axes change their order; else
// the value itself.
Value scoresOf(Builder& b, Value v, std::optional<Op> before, int64_t axis) {
  if (before && v.node->op() == Op::Transpose) {
    const TransposeNode turned(*v.node);
    const Value scores = scoresOf(b, turned.x(), before, turned.perm()[static_cast<size_t>(axis)]);
    return scores == turned.x() ? v : b.transposed(scores, turned.perm());
  }
  if (!before || v.node->op() != *before) return v;
  if (*before == Op::Softmax) {
    const auto along = v.node->attrs().integer("axis");
    if ((along < 0 ? along + v.rank() : along) != axis) return v;
  }
  return v.node->input(0);
}

}  // namespace

std::vector<LossRow> losses() { return {table().begin(), table().end()}; }

Value savedAs(const Function& function, const std::string& output) {
  for (const Node* save : function.saves())
    if (save->input(1).node->name() == output) return save->input(0);
  return {};
}

Result<AddedLoss> addLoss(Function& function, const Loss& loss) {
  grad::Faults faults;
  const Row* row = grad::findRow(table(), "loss", loss.name, faults);
  const grad::SettingValues settings =
      row != nullptr ? grad::settingsOf(row->name, row->settings, loss.settings, faults) : grad::SettingValues();
  std::vector<std::string_view> outputs;
  for (const Placeholder* output : outputsOf(function)) outputs.push_back(output->name());
  AddedLoss added{.output = loss.output};
  if (added.output.empty() && !outputs.empty()) added.output = outputs.front();
  const Value output = savedAs(function, added.output);
  if (!output) faults.unknown("output", added.output, outputs);
  AGLOW_OK(faults.status());
  if (!isFloat(output.kind()) || output.rank() < 1)
    faults.add(fmt::format("expected an output of floats with samples along its first axis, got {} of {}",
                           quoted(added.output), output.type().text()));
  const bool hasAxis = settings.contains("axis");
  const auto wanted = hasAxis ? static_cast<int64_t>(settings.at("axis")) : 0;
  const int64_t axis = wanted < 0 ? wanted + output.rank() : wanted;
  if (hasAxis && (axis < 1 || axis >= output.rank()))
    faults.add(fmt::format("setting 'axis' of '{}' is {}; expected the axis of the classes of {} {}", row->name, wanted,
                           quoted(added.output), output.type().text()));
  AGLOW_OK(faults.status());

  return building([&] {
    Builder b(function);
    b.named("loss");
    const Value scores = scoresOf(b, output, row->before, axis);
    const Value wide = b.casted(scores, wideKind(scores.kind()));
    std::vector<int64_t> rows = output.shape().dims();
    if (row->takesLabels) {
      added.classes = output.dim(static_cast<int>(axis));
      added.axis = axis;
      rows.erase(rows.begin() + axis);
    }
    const ElemKind kind = row->takesLabels ? ElemKind::Int64 : output.kind();
    const Value target = b.input("target", Type(kind, orFail(Shape::create(rows))));
    const Value weights = b.input("weights", Type(ElemKind::Float32, Shape{output.dim(0)}));
    const Value comparable = row->takesLabels ? target : b.casted(target, wide.kind());
    Value each = row->rule({.b = b, .output = wide, .target = comparable, .axis = axis, .settings = settings});
    if (each.rank() > 1) each = b.reduced(each, "mean", grad::axesBetween(1, each.rank()), false);
    const Value sum = b.reduced(b.mul(each, b.casted(weights, each.kind())), "sum", {0}, false);
    b.output("loss", b.casted(sum, ElemKind::Float32));
    added.target = target.node->name();
    added.weights = weights.node->name();
    added.loss = function.saves().back()->input(1).node->name();
    return added;
  });
}

}  // namespace aglow
