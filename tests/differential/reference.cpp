#include "reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "graph/builder.h"
#include "lower/lower.h"
#include "random_graph.h"
#include "steps.h"

namespace aglow::differential {

namespace {

// The distance between 1 and the next value.
double unitOf(ElemKind kind) {
  switch (kind) {
    case ElemKind::Float64:
      return 0x1p-52;
    case ElemKind::Float32:
      return 0x1p-23;
    case ElemKind::Float16:
      return 0x1p-10;
    case ElemKind::BFloat16:
      return 0x1p-7;
    case ElemKind::Float8E4M3FN:
    case ElemKind::Float8E4M3FNUZ:
      return 0x1p-3;
    case ElemKind::Float8E5M2:
    case ElemKind::Float8E5M2FNUZ:
      return 0x1p-2;
    case ElemKind::Float4E2M1:
      return 0.5;
    default:
      return 1;
  }
}

bool isNarrow(ElemKind kind) { return kind != ElemKind::Float32 && kind != ElemKind::Float64; }

bool hasFloats(const Node& node) {
  for (const Type& type : node.types())
    if (isFloat(type.kind())) return true;
  for (const Value v : node.inputs())
    if (v && isFloat(v.kind())) return true;
  return false;
}

// Core operators that move elements or choose among them.
bool onlyMoves(const Node& node) {
  static const std::vector<Op> kMoves{
      Op::Cast,    Op::Splat,     Op::Transpose, Op::Slice,  Op::Concat,         Op::Pad,      Op::Gather,
      Op::MaxPool, Op::ArgReduce, Op::TopK,      Op::Expand, Op::GatherElements, Op::GatherND, Op::MaxPoolWithIndices};
  if (std::find(kMoves.begin(), kMoves.end(), node.op()) != kMoves.end()) return true;
  if (node.attrs().indexOf("reduction") >= 0) {
    const std::string& reduction = node.attrs().word("reduction");
    return reduction != "add" && reduction != "mul";
  }
  if (node.op() == Op::Reduce) return node.attrs().word("kind") == "max" || node.attrs().word("kind") == "min";
  return node.def().kind == OpKind::View;
}

bool rounds(const Node& node) {
  if (!hasFloats(node) || onlyMoves(node)) return false;
  if (node.def().kind != OpKind::Elementwise) return true;
  const Formula& formula = node.def().scalar;
  return std::any_of(formula.begin(), formula.end(), [](const Term& t) { return !isExact(t.op); });
}

// Every element by up to `units` in the last place.
Tensor moved(Random& random, const Tensor& t, double units) {
  if (t.empty() || !isFloat(t.type().kind())) return t;
  std::vector<double> values = t.doubles();
  const double step = units * unitOf(t.type().kind());
  // Subnormal values have absolute units; some machines flush them.
  const double least = t.type().kind() == ElemKind::Float32 ? 0x1p-126 * unitOf(ElemKind::Float32) : 0;
  for (double& v : values) v += std::abs(v) * random.real(-step, step) + random.real(-least, least) * units;
  return Tensor::fromDoubles(t.type(), values);
}

// Functions of f32 are good to about 4 units. Results of narrow kinds are computed in f32 and rounded once, so they are
// off by one unit at most.
constexpr double kOperandUnits = 2, kResultUnits = 4;

Tensor movedResult(Random& random, const Tensor& t) {
  if (!isFloat(t.type().kind()) || !isNarrow(t.type().kind())) return moved(random, t, kResultUnits);
  return moved(random, t, 1);
}

Tensor movedOperand(Random& random, const Tensor& t) {
  if (t.empty() || isNarrow(t.type().kind())) return t;
  return moved(random, t, kOperandUnits);
}

// The same convolution with its padding as elements of x: an infinite weight over the padding is skipped by some and
// multiplied by zero by others, and both follow from ONNX's words.
Result<std::vector<Tensor>> withWrittenPadding(const Node& conv, const std::vector<Tensor>& operands) {
  Module scratch;
  Builder b(*scratch.addFunction("padded"));
  std::vector<Value> inputs;
  for (const Tensor& t : operands) inputs.push_back(t.empty() ? Value{} : b.input("in", t.type()));
  const std::vector<int64_t>& pads = conv.attrs().ints("pads");
  const auto half = static_cast<std::ptrdiff_t>(pads.size() / 2);
  PadAttrs around{.before = {0, 0}, .after = {0, 0}};
  around.before.insert(around.before.end(), pads.begin(), pads.begin() + half);
  around.after.insert(around.after.end(), pads.begin() + half, pads.end());
  const Value x = b.pad(inputs[0], b.scalarLike(inputs[0], 0), around);
  Attrs attrs = conv.attrs();
  attrs.set("pads", std::vector<int64_t>{});
  ReferenceEvaluator evaluator;
  AGLOW_TRY(const std::vector<Tensor> padded,
            evaluator.evaluate(*x.node, std::vector<Tensor>{operands[0], Tensor::scalar(x.kind(), 0)}));
  inputs[0] = x;
  std::vector<Tensor> moved = operands;
  moved[0] = padded[0];
  return evaluator.evaluate(*b.make(inputs, attrs), moved);
}

struct Evaluation {
  std::vector<std::vector<Tensor>> values;
  std::unordered_map<const Node*, Tensor> written;
  std::unordered_map<const Node*, bool> rounded;
};

// Without a source of random numbers, exactly.
Result<Evaluation> evaluate(const Case& c, Random* random) {
  Evaluation e;
  std::unordered_map<const Node*, size_t> place;
  ReferenceEvaluator evaluator;
  const auto read = [&](Value v) -> Tensor {
    if (!v) return {};
    if (const Constant* constant = asConstant(v)) return constant->tensor();
    if (v.node->op() == Op::Placeholder) {
      const auto given = c.inputs.find(v.node->name());
      return given == c.inputs.end() ? Tensor() : given->second;  // the target of a Save has no value yet
    }
    return e.values[place.at(v.node)][static_cast<size_t>(v.index)];
  };
  for (const auto& node : c.function().nodes()) {
    bool rounded = rounds(*node);
    const bool moves = rounded && random != nullptr;
    std::vector<Tensor> operands;
    for (const Value v : node->inputs()) {
      operands.push_back(moves ? movedOperand(*random, read(v)) : read(v));
      if (v && e.rounded[v.node]) rounded = true;
    }
    e.rounded[node.get()] = rounded;
    place[node.get()] = e.values.size();
    e.values.emplace_back();
    if (node->op() == Op::Save) {
      e.written[node->input(1).node] = operands[0];
      e.rounded[node->input(1).node] = rounded;
      continue;
    }
    if (moves && node->def().kind == OpKind::Elementwise) {
      e.values.back() = {movedFormula(*random, *node, operands, kResultUnits)};
      continue;
    }
    const bool padded = moves && node->op() == Op::Conv && !node->attrs().ints("pads").empty() && random->chance(0.5);
    AGLOW_TRY(e.values.back(), padded ? withWrittenPadding(*node, operands) : evaluator.evaluate(*node, operands));
    if (moves)
      for (Tensor& t : e.values.back()) t = movedResult(*random, t);
  }
  return e;
}

// Quantized values by what they store.
Tensor numbersOf(const Tensor& t) {
  return isQuantized(t.type().kind()) ? t.retyped(Type(storageKind(t.type().kind()), t.type().shape())) : t;
}

std::string number(double v) { return fmt::format("{:.9g}", v); }

}  // namespace

Result<Reference> Reference::of(const Case& c) {
  Reference made(c);
  AGLOW_TRY(Evaluation e, evaluate(c, nullptr));
  for (const Placeholder* place : outputsOf(c.function())) {
    made.names_.push_back(place->name());
    made.exact_.push_back(e.written.at(place));
    made.rounded_.push_back(e.rounded.at(place));
  }
  made.values_ = std::move(e.values);
  return made;
}

void Reference::evaluateMore(int times) {
  if (!lowered_.module) {
    lowered_ = cloned(*case_);
    const Result<bool> done = lower(lowered_.function());
    AGLOW_CHECK(done.ok(), done.ok() ? "" : done.error().text());
  }
  for (int i = 0; i < times; ++i) {
    Random random(0x5eed + moved_.size());
    Result<Evaluation> e = evaluate(lowered_, &random);
    std::vector<Tensor> outputs;
    if (e.ok())
      for (const Placeholder* place : outputsOf(lowered_.function())) outputs.push_back(e->written.at(place));
    moved_.push_back(std::move(outputs));  // none where an index jumped out of its axis
  }
}

std::vector<double> Reference::allowed(size_t output) const {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kUnits = 8, kSpread = 8;
  const Type& type = exact_[output].type();
  const bool real = isFloat(type.kind());
  const std::vector<double> x = numbersOf(exact_[output]).doubles();
  std::vector<double> bounds(x.size(), 0);
  if (!rounded_[output]) return bounds;
  const double units = (isNarrow(type.kind()) ? 1 : kUnits) * unitOf(type.kind());
  for (size_t i = 0; i < x.size() && real; ++i)
    if (std::isfinite(x[i])) bounds[i] = margin * units * std::abs(x[i]);
  for (const std::vector<Tensor>& outputs : moved_) {
    if (outputs.empty()) return std::vector<double>(x.size(), kInf);
    const std::vector<double> other = numbersOf(outputs[output]).doubles();
    for (size_t i = 0; i < x.size(); ++i) {
      const bool both = std::isfinite(other[i]) && std::isfinite(x[i]);
      const bool same = other[i] == x[i] || (std::isnan(other[i]) && std::isnan(x[i]));
      if (!same && (!real || !both))
        bounds[i] = kInf;
      else if (both)
        bounds[i] = std::max(bounds[i], margin * (kSpread * std::abs(other[i] - x[i]) + units * std::abs(x[i])));
    }
  }
  return bounds;
}

std::string Reference::compare(size_t output, const Tensor& got) const {
  const Tensor& exact = exact_[output];
  const Type& type = exact.type();
  if (got.type() != type) return fmt::format("type {} instead of {}", got.type().text(), type.text());
  if (got == exact) return {};
  const bool real = isFloat(type.kind());
  const std::vector<double> x = numbersOf(exact).doubles(), y = numbersOf(got).doubles();
  // Beyond 2^53 doubles say too little of integers.
  const std::vector<int64_t> xi = real ? std::vector<int64_t>() : numbersOf(exact).toInts();
  const std::vector<int64_t> yi = real ? std::vector<int64_t>() : numbersOf(got).toInts();
  const std::vector<double> bounds = allowed(output);
  for (size_t i = 0; i < x.size(); ++i) {
    if (real ? x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i])) : xi[i] == yi[i]) continue;
    if (std::isinf(bounds[i]) || (real && bounds[i] > 0 && std::abs(x[i] - y[i]) <= bounds[i])) continue;
    return fmt::format("element {} of {}: expected {}, got {} (allowed: {})", i, type.text(), number(x[i]),
                       number(y[i]), number(bounds[i]));
  }
  return {};
}

Tensor Reference::bounds(size_t output) {
  constexpr int kMany = 30;
  if (moved_.empty()) evaluateMore(kMany);
  return Tensor::fromDoubles(Type(ElemKind::Float64, exact_[output].type().shape()), allowed(output));
}

std::string Reference::difference(size_t output, const Tensor& got) {
  constexpr int kConfirm = 60;
  std::string found = compare(output, got);
  if (found.empty() || !moved_.empty()) return found;
  evaluateMore(kConfirm);
  return compare(output, got);
}

}  // namespace aglow::differential
