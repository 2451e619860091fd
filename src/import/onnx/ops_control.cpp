// Control flow, decided when compiling: a branch is chosen and inlined, loops are unrolled. A choice that is made when
// the program runs is one between the results of both branches.
#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/departures.h"
#include "import/onnx/host_values.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"
#include "ops/kind_sets.h"

namespace aglow::onnx {

namespace {

constexpr int64_t kMaxSteps = 1 << 13;
constexpr size_t kMaxFunction = 500'000;  // nodes
// A longer loop is better run step by step, where a runtime can do that.
constexpr int64_t kUnrolled = 1000;  // nodes

void leaveLongLoop(const OpImport& c, int64_t steps, const Graph& body) {
  if (steps > kUnrolled / std::max<int64_t>(std::ssize(body.nodes), 1)) c.leaveToRuntime();
}

void checkStep(const OpImport& c, int64_t step) {
  if (step >= kMaxSteps)
    fail(Code::LimitReached, fmt::format("the loop takes more than {} steps, too many to unroll", kMaxSteps));
  if (c.functionSize() > kMaxFunction)
    fail(Code::LimitReached,
         fmt::format("unrolling the loop takes more than {} nodes (at step {})", kMaxFunction, step));
}

// One truth value, known when compiling.
bool decided(OpImport& c, const Imported& value, std::string_view what) {
  if (value.kind != Imported::Kind::Tensor) fail(Code::BadNode, fmt::format("expected {} to be a tensor", what));
  const Tensor tensor = c.constant(value.tensor);
  if (tensor.type().kind() != ElemKind::Bool || tensor.type().elements() != 1)
    fail(Code::BadNode, fmt::format("expected {} to be one bool, got {}", what, tensor.type().text()));
  return tensor.toInts().front() != 0;
}

// The results of the steps side by side along a new axis.
Value stacked(Builder& b, const std::vector<Value>& steps, int64_t axis) {
  std::vector<Value> parts;
  for (const Value v : steps) parts.push_back(unsqueezed(b, v, axis));
  return parts.size() == 1 ? parts.front() : b.concat(parts, {.axis = axis});
}

Value tensorOf(const Imported& value, std::string_view what) {
  if (value.kind == Imported::Kind::Labelled) throw BuildFailure(needsRuntime());
  if (value.kind != Imported::Kind::Tensor) fail(Code::BadNode, fmt::format("expected {} to be a tensor", what));
  return value.tensor;
}

// What a nested graph declares of an output that no step computed: no elements, other extents as declared.
Value emptyScan(Builder& b, const ValueInfo& info, int64_t axis) {
  const auto kind = elemKindByOnnx(info.type.elemType);
  if (info.type.kind != TypeProto::Kind::Tensor || !info.type.hasShape || !kind)
    fail(Code::UnsupportedFeature,
         fmt::format("the loop takes no step, and nothing declares the shape of its output '{}'", info.name));
  std::vector<int64_t> dims;
  for (const Dim& dim : info.type.dims)
    dims.push_back(dim.kind == Dim::Kind::Value ? std::max<int64_t>(dim.value, 0) : 0);
  dims.insert(dims.begin() + axis, 0);
  return b.splat({.elem = *kind, .shape = std::move(dims)});
}

// Whether nodes may be computed though nobody asked for them: they write nothing, and no value makes them fail.
bool mayBeInVain(const aglow::Node* node) {
  if (node->op() == Op::Save) return false;
  const OpDef& op = node->def();
  for (int i = 0; i < node->inputCount(); ++i) {
    const OperandDef& operand = op.in[std::min(i, op.in.size() - 1)];
    if (operand.kinds == kinds::indices && node->input(i) && !isConstant(node->input(i))) return false;
  }
  return true;
}

// Both branches, and a choice between what they give: the work of the one that is not chosen is skipped when a
// predicate is worth it. Not where types differ, or a branch is long or has to be left out.
bool chooseLater(OpImport& c, const Graph& then, const Graph& otherwise) {
  Builder& b = c.b;
  aglow::Node* const last = b.function().back();
  const auto giveUp = [&] {
    while (b.function().back() != last) b.function().erase(b.function().back());
    return false;
  };
  const std::optional<std::vector<Imported>> yes = c.tryInline(then);
  const std::optional<std::vector<Imported>> no = yes ? c.tryInline(otherwise) : std::nullopt;
  if (!no) return giveUp();
  int64_t count = 0;
  for (aglow::Node* node = last == nullptr ? b.function().front() : b.function().next(last); node != nullptr;
       node = b.function().next(node))
    if (++count > kUnrolled || !mayBeInVain(node)) return giveUp();
  for (size_t i = 0; i < yes->size(); ++i) {
    const Imported &first = (*yes)[i], &second = (*no)[i];
    for (const Imported* one : {&first, &second})
      if (one->kind != Imported::Kind::Tensor || one->scale || !contains(kinds::plain, one->tensor.kind()))
        return giveUp();
    if (first.tensor.type() != second.tensor.type()) return giveUp();
  }
  const Value condition = b.reshaped(c.in(0), {});
  for (size_t i = 0; i < yes->size(); ++i)
    c.out(static_cast<int>(i), b.where(condition, (*yes)[i].tensor, (*no)[i].tensor));
  return true;
}

void ifOp(OpImport& c) {
  const Graph& then = c.graph("then_branch");
  const Graph& otherwise = c.graph("else_branch");
  if (then.outputs.size() != otherwise.outputs.size() || then.outputs.size() != c.node.outputs.size())
    fail(Code::BadNode, fmt::format("expected as many outputs of both branches as the node has ({}), got {} and {}",
                                    c.node.outputs.size(), then.outputs.size(), otherwise.outputs.size()));
  const Graph* chosen = nullptr;
  try {
    chosen = decided(c, c.operand(0), "the condition") ? &then : &otherwise;
  } catch (const NeedsValue&) {
    if (!chooseLater(c, then, otherwise)) throw;
    return;
  }
  const std::vector<Imported> results = c.inlineGraph(*chosen, {});
  for (size_t i = 0; i < results.size(); ++i) c.out(static_cast<int>(i), results[i]);
}

void loop(OpImport& c) {
  const Graph& body = c.graph("body");
  const int states = std::max(c.inputs() - 2, 0);
  const int scans = static_cast<int>(body.outputs.size()) - 1 - states;
  if (scans < 0)
    fail(Code::BadNode,
         fmt::format("expected at least {} outputs of the loop's body, got {}", 1 + states, body.outputs.size()));
  if (body.inputs.size() < 2)
    fail(Code::BadNode, fmt::format("expected {} inputs of the loop's body, got {}", 2 + states, body.inputs.size()));
  const int64_t trips = c.has(0) ? c.constantInt(0) : INT64_MAX;
  const bool conditional = c.has(1);
  if (!conditional && !c.has(0)) fail(Code::BadNode, "a loop without trip count and condition never ends");
  bool condition = !conditional || decided(c, c.operand(1), "the loop's condition");

  if (!conditional && condition) leaveLongLoop(c, trips, body);
  std::vector<Imported> state;
  for (int i = 0; i < states; ++i) state.push_back(c.operand(2 + i));
  std::vector<std::vector<Value>> collected(static_cast<size_t>(scans));
  for (int64_t step = 0; step < trips && condition; ++step) {
    checkStep(c, step);
    leaveLongLoop(c, step, body);
    std::vector<Imported> inputs;
    const auto handed = [&](ElemKind kind, int64_t value) {
      const Shape shape = loopInputShape(body.inputs[inputs.size()]);
      inputs.push_back(Imported::of(c.b.constant(Tensor::of(Type(kind, shape), std::vector{value}))));
    };
    handed(ElemKind::Int64, step);
    handed(ElemKind::Bool, 1);
    inputs.insert(inputs.end(), state.begin(), state.end());
    std::vector<Imported> results = c.inlineGraph(body, inputs);
    if (conditional) condition = decided(c, results.front(), "the condition that the loop's body computes");
    for (int i = 0; i < scans; ++i)
      collected[static_cast<size_t>(i)].push_back(
          tensorOf(results[static_cast<size_t>(1 + states + i)], "what the loop's steps collect"));
    state.assign(results.begin() + 1, results.begin() + 1 + states);
  }
  for (int i = 0; i < states; ++i) c.out(i, state[static_cast<size_t>(i)]);
  for (int i = 0; i < scans; ++i) {
    const std::vector<Value>& steps = collected[static_cast<size_t>(i)];
    c.out(states + i, steps.empty() ? emptyScan(c.b, body.outputs[static_cast<size_t>(1 + states + i)], 0)
                                    : stacked(c.b, steps, 0));
  }
}

// The inputs and outputs of a Scan, without a batch.
struct Scan {
  const Graph& body;
  std::vector<Imported> state;
  std::vector<Value> inputs;
  std::vector<int64_t> inputAxes, inputDirections, outputAxes, outputDirections;  // outputs' axes may be negative

  size_t outputs() const { return body.outputs.size() - state.size(); }
};

Scan readScan(OpImport& c, int first) {
  const Graph& body = c.graph("body");
  const int64_t scanInputs = c.integer("num_scan_inputs");
  const int64_t states = c.inputs() - first - scanInputs;
  if (scanInputs < 1 || states < 0)
    fail(Code::BadNode, fmt::format("expected 'num_scan_inputs' from 1 to {}, got {}", c.inputs() - first, scanInputs));
  if (static_cast<int64_t>(body.outputs.size()) < states)
    fail(Code::BadNode, fmt::format("expected at least {} outputs of the body, got {}", states, body.outputs.size()));
  Scan scan{body, {}, {}, {}, {}, {}, {}};
  for (int i = 0; i < states; ++i) scan.state.push_back(Imported::of(c.in(first + i)));
  for (int64_t i = 0; i < scanInputs; ++i) scan.inputs.push_back(c.in(first + static_cast<int>(states + i)));
  const auto list = [&](std::string_view name, size_t count) {
    std::vector<int64_t> values = c.ints(name, std::vector<int64_t>(count, 0));
    if (values.size() != count)
      fail(Code::BadNode, fmt::format("expected {} entries in '{}', got {}", count, name, values.size()));
    return values;
  };
  const bool batched = first == 1;
  scan.inputDirections = list(batched ? "directions" : "scan_input_directions", scan.inputs.size());
  scan.inputAxes = list("scan_input_axes", scan.inputs.size());
  scan.outputAxes = list("scan_output_axes", scan.outputs());
  scan.outputDirections = list("scan_output_directions", scan.outputs());
  for (const std::vector<int64_t>* directions : {&scan.inputDirections, &scan.outputDirections})
    if (std::any_of(directions->begin(), directions->end(), [](int64_t d) { return d != 0 && d != 1; }))
      fail(Code::BadNode, fmt::format("expected directions of 0 or 1, got {}", listText(*directions)));
  return scan;
}

// Runs `steps` steps; gives the final state, then what the steps collect, each filled up with zeros to `extent` steps.
std::vector<Imported> runScan(OpImport& c, const Scan& scan, int64_t steps, int64_t extent) {
  Builder& b = c.b;
  std::vector<Imported> state = scan.state;
  std::vector<std::vector<Value>> collected(scan.outputs());
  for (int64_t step = 0; step < steps; ++step) {
    checkStep(c, step);
    std::vector<Imported> inputs = state;
    for (size_t i = 0; i < scan.inputs.size(); ++i) {
      const Value x = scan.inputs[i];
      const int64_t axis = scan.inputAxes[i], at = scan.inputDirections[i] != 0 ? steps - 1 - step : step;
      std::vector<int64_t> dims = x.shape().dims();
      dims.erase(dims.begin() + axis);
      inputs.push_back(Imported::of(b.reshape(sliced(b, x, axis, at, 1), {.shape = std::move(dims)})));
    }
    const std::vector<Imported> results = c.inlineGraph(scan.body, inputs);
    for (size_t i = 0; i < collected.size(); ++i)
      collected[i].push_back(tensorOf(results[state.size() + i], "what the steps collect"));
    std::copy(results.begin(), results.begin() + static_cast<int64_t>(state.size()), state.begin());
  }
  for (size_t i = 0; i < collected.size(); ++i) {
    std::vector<Value>& parts = collected[i];
    const ValueInfo& declared = scan.body.outputs[scan.state.size() + i];
    const auto rank =
        static_cast<int64_t>(parts.empty() ? declared.type.dims.size() : parts.front().shape().dims().size());
    const int64_t axis = c.axis(scan.outputAxes[i], rank + 1);
    if (parts.empty() && extent == 0) {
      state.push_back(Imported::of(emptyScan(b, declared, axis)));
      continue;
    }
    if (parts.empty()) fail(Code::UnsupportedFeature, "a row of the batch without steps is not supported");
    while (static_cast<int64_t>(parts.size()) < extent)
      parts.push_back(b.splat({.elem = parts.front().kind(), .shape = parts.front().shape().dims()}));
    if (scan.outputDirections[i] != 0) std::reverse(parts.begin(), parts.end());
    state.push_back(Imported::of(stacked(b, parts, axis)));
  }
  return state;
}

void scan9(OpImport& c) {
  Scan scan = readScan(c, 0);
  int64_t steps = -1;
  for (size_t i = 0; i < scan.inputs.size(); ++i) {
    int64_t& axis = scan.inputAxes[i];
    axis = c.axis(axis, scan.inputs[i].rank());
    const int64_t extent = scan.inputs[i].dim(static_cast<int>(axis));
    if (steps >= 0 && extent != steps)
      fail(Code::BadNode, fmt::format("expected scanned axes of one extent, got {} and {}", steps, extent));
    steps = extent;
  }
  leaveLongLoop(c, steps, scan.body);
  const std::vector<Imported> results = runScan(c, scan, steps, steps);
  for (size_t i = 0; i < results.size(); ++i) c.out(static_cast<int>(i), results[i]);
}

// Opset 8 runs the rows of a batch one by one, each for its own number of steps along axis 1.
void scan8(OpImport& c) {
  Builder& b = c.b;
  const Scan all = readScan(c, 1);
  const auto extentOf = [&](Value v, int axis, int64_t known) {
    if (v.rank() <= axis || (known >= 0 && v.dim(axis) != known))
      fail(Code::BadNode, fmt::format("expected inputs that agree along axis {}, got {}", axis, v.type().text()));
    return v.dim(axis);
  };
  int64_t batch = -1, extent = -1;
  for (const Value v : all.inputs) {
    batch = extentOf(v, 0, batch);
    extent = extentOf(v, 1, extent);
  }
  for (const Imported& v : all.state) extentOf(v.tensor, 0, batch);
  std::vector<int64_t> lengths(static_cast<size_t>(batch), extent);
  if (c.has(0)) lengths = c.constantInts(0);
  if (static_cast<int64_t>(lengths.size()) != batch || batch == 0)
    fail(Code::BadNode, fmt::format("expected a length for each of {} rows, got {}", batch, lengths.size()));
  std::vector<std::vector<Value>> rows;
  for (int64_t row = 0; row < batch; ++row) {
    const auto ofRow = [&](Value v) {
      std::vector<int64_t> dims(v.shape().dims().begin() + 1, v.shape().dims().end());
      return b.reshape(sliced(b, v, 0, row, 1), {.shape = std::move(dims)});
    };
    Scan scan = all;
    for (Imported& v : scan.state) v.tensor = ofRow(v.tensor);
    for (Value& v : scan.inputs) v = ofRow(v);
    const int64_t steps = lengths[static_cast<size_t>(row)];
    if (steps < 0 || steps > extent)
      fail(Code::BadNode, fmt::format("expected lengths from 0 to {}, got {}", extent, steps));
    const std::vector<Imported> results = runScan(c, scan, steps, extent);
    rows.resize(results.size());
    for (size_t i = 0; i < results.size(); ++i) rows[i].push_back(tensorOf(results[i], "the state"));
  }
  for (size_t i = 0; i < rows.size(); ++i) c.out(static_cast<int>(i), stacked(b, rows[i], 0));
}

void sequenceMap(OpImport& c) {
  const Graph& body = c.graph("body");
  if (c.operand(0).kind != Imported::Kind::Sequence) fail(Code::BadNode, "expected a sequence as the first input");
  const size_t count = c.operand(0).items.size();
  std::vector<std::vector<Imported>> collected(body.outputs.size());
  for (size_t i = 0; i < count; ++i) {
    checkStep(c, static_cast<int64_t>(i));
    std::vector<Imported> inputs;
    for (int input = 0; input < c.inputs(); ++input) {
      const Imported& value = c.operand(input);
      if (value.kind == Imported::Kind::Sequence && value.items.size() != count)
        fail(Code::BadNode, fmt::format("expected sequences of {} elements, got {}", count, value.items.size()));
      inputs.push_back(value.kind == Imported::Kind::Sequence ? value.items[i] : value);
    }
    const std::vector<Imported> results = c.inlineGraph(body, inputs);
    for (size_t k = 0; k < results.size(); ++k) collected[k].push_back(results[k]);
  }
  for (size_t k = 0; k < collected.size(); ++k) c.out(static_cast<int>(k), Imported::sequence(std::move(collected[k])));
}

}  // namespace

std::span<const OpRow> controlRows() {
  static constexpr OpRow rows[] = {
      alone({"If", ifOp}),
      alone({"Loop", loop}),
      alone({"Scan", scan8, 8, 8}),
      alone({"Scan", scan9, 9}),
      alone({"SequenceMap", sequenceMap, 17}),
  };
  return rows;
}

}  // namespace aglow::onnx
