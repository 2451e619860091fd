// Slices, concatenations, and lookups at known places. Slices move up, so that less is computed.
#include <algorithm>
#include <numeric>

#include "graph/op_views.h"
#include "ops/axes.h"
#include "optimize/building.h"
#include "optimize/rules.h"
#include "optimize/sampling.h"

namespace aglow {

using namespace pattern;  // NOLINT: the rules' own language

namespace {

// A slice with its defaults filled in.
struct Range {
  Ints starts, sizes, steps;

  explicit Range(const Node& slice)
      : starts(slice.attrs().ints("starts")),
        sizes(slice.attrs().ints("sizes")),
        steps(filled(slice.attrs().ints("steps"), slice.input(0).rank(), 1)) {}
  // The whole of a shape.
  explicit Range(const Shape& shape) : starts(shape.dims().size(), 0), sizes(shape.dims()), steps(starts.size(), 1) {}

  bool covers(const Shape& shape) const {
    for (size_t i = 0; i < starts.size(); ++i)
      if (sizes[i] != shape.dims()[i] || (sizes[i] > 0 && starts[i] != 0) || (sizes[i] > 1 && steps[i] != 1))
        return false;
    return true;
  }
  bool isEmpty() const { return std::find(sizes.begin(), sizes.end(), 0) != sizes.end(); }
  // The lowest and highest place along an axis.
  int64_t low(size_t axis) const { return std::min(starts[axis], starts[axis] + (sizes[axis] - 1) * steps[axis]); }
  int64_t high(size_t axis) const { return std::max(starts[axis], starts[axis] + (sizes[axis] - 1) * steps[axis]); }
  bool operator==(const Range&) const = default;
};

Value sliced(Builder& b, Value x, const Range& r) {
  if (r.covers(x.shape())) return x;
  return b.slice(x, {.starts = r.starts, .sizes = r.sizes, .steps = r.steps});
}

// The part of an operand that broadcasting brings into a range of the result.
Range partOf(const Range& r, const Shape& operand) {
  Range part(operand);
  const size_t missing = r.starts.size() - part.starts.size();
  for (size_t i = 0; i < part.starts.size(); ++i) {
    if (operand.dims()[i] == 1) continue;
    part.starts[i] = r.starts[i + missing];
    part.sizes[i] = r.sizes[i + missing];
    part.steps[i] = r.steps[i + missing];
  }
  return part;
}

Values sliceOfConcat(const Match& m, Builder& b) {
  const auto axis = static_cast<size_t>(m.attrs(0).integer("axis"));
  Range r(m.root());
  if (r.isEmpty()) return {};
  // The operands that the slice touches, and how many elements stand before them.
  std::vector<Value> touched;
  int64_t at = 0, before = 0;
  for (const Value v : m.node(0).inputs()) {
    const int64_t end = at + v.dim(static_cast<int>(axis));
    if (end <= r.low(axis))
      before = end;
    else if (at <= r.high(axis))
      touched.push_back(v);
    at = end;
  }
  if (static_cast<int>(touched.size()) == m.node(0).inputCount()) return {};
  r.starts[axis] -= before;
  const Value rest = touched.size() == 1 ? touched.front() : b.concat(touched, {.axis = static_cast<int64_t>(axis)});
  return {sliced(b, rest, r)};
}

Values sliceOfPad(const Match& m, Builder& b) {
  Range r(m.root());
  if (r.isEmpty()) return {};
  const Ints& before = m.attrs(1).ints("before");
  for (size_t i = 0; i < r.starts.size(); ++i) {
    if (r.low(i) < before[i] || r.high(i) >= before[i] + m[0].dim(static_cast<int>(i))) return {};
    r.starts[i] -= before[i];
  }
  return {sliced(b, m[0], r)};
}

// A slice moves up only where no second value has to be sliced for it, and where it saves work.
bool savesWork(const Match& m) {
  const Node& node = m.node(0);
  if (m.result().type().elements() >= m[0].type().elements() || Range(m.root()).isEmpty()) return false;
  const std::vector<Value> inputs = node.inputs();
  return std::count_if(inputs.begin(), inputs.end(), [](Value v) { return !isConstant(v) && v.rank() > 0; }) == 1;
}

std::vector<Rule> slices() {
  OpSet elementwise = opsOf(OpKind::Elementwise) | opSet({Op::Cast});
  elementwise.reset(static_cast<size_t>(Op::Expand));
  return {
      {.name = "slice-nothing",
       .doc = "A slice that takes all elements in order.",
       .pattern = op(Op::Slice, {any(0)}),
       .condition = [](const Match& m) { return Range(m.root()).covers(m[0].shape()); },
       .build = [](const Match& m, Builder&) -> Values { return {m[0]}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         const Ints zeros(static_cast<size_t>(x.rank()), 0);
         return b.slice(x, {.starts = zeros, .sizes = x.shape().dims()});
       }},
      {.name = "slice-slice",
       .doc = "Two slices are one.",
       .pattern = op(Op::Slice, {op(Op::Slice, {any(0)}).as(1)}),
       .build = [](const Match& m, Builder& b) -> Values {
         const Range inner(m.node(1));
         Range r(m.root());
         for (size_t i = 0; i < r.starts.size(); ++i) {
           r.starts[i] = r.sizes[i] == 0 ? 0 : inner.starts[i] + r.starts[i] * inner.steps[i];
           r.steps[i] = r.sizes[i] <= 1 ? 1 : r.steps[i] * inner.steps[i];
         }
         return {sliced(b, m[0], r)};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         return sampling::slice(rng, b, sampling::slice(rng, b, sampling::anyInput(rng, b)));
       }},
      {.name = "slice-concat",
       .doc = "A slice of a concatenation needs only the operands that it touches.",
       .pattern = op(Op::Slice, {op(Op::Concat).as(0)}),
       .build = sliceOfConcat,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const auto part = [&] { return sampling::input(b, {2, rng.between(2, 4), 3}); };
         const std::vector<Value> parts{part(), part(), part()};
         const Value all = b.concat(parts, {.axis = 1});
         const Value some = b.slice(all, {.starts = {0, rng.between(0, 1), 0}, .sizes = {2, rng.between(1, 3), 3}});
         return rng.flip() ? some : b.slice(all, {.starts = {1, 3, 2}, .sizes = {2, 2, 2}, .steps = {-1, -2, -1}});
       }},
      {.name = "slice-pad",
       .doc = "A slice of padding that takes none of it.",
       .pattern = op(Op::Slice, {op(Op::Pad, {any(0)}).as(1)}),
       .build = sliceOfPad,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const int64_t front = rng.between(0, 3), back = rng.between(0, 3);
         const Value x = sampling::input(b, {3, 4});
         const Value y = b.pad(x, b.scalarLike(x, 1), {.before = {front, 1}, .after = {back, 2}});
         return b.slice(y, {.starts = {front + 2, 1}, .sizes = {2, 3}, .steps = {-1, 1}});
       }},
      {.name = "slice-expand",
       .doc = "A slice of an expansion is the expansion of a slice.",
       .pattern = op(Op::Slice, {op(Op::Expand, {any(0)})}),
       .condition = [](const Match& m) { return !Range(m.root()).isEmpty(); },
       .build = [](const Match& m, Builder& b) -> Values {
         return {expanded(b, sliced(b, m[0], partOf(Range(m.root()), m[0].shape())), m.result().shape())};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Shape to = sampling::shape(rng, 1, 3);
         return sampling::slice(rng, b,
                                b.expand(sampling::input(b, sampling::broadcastable(rng, to)), {.shape = to.dims()}));
       }},
      {.name = "hoist-slice",
       .doc = "A slice moves above an elementwise operator, which then computes less.",
       .pattern = op(Op::Slice, {op(elementwise).once().as(0)}),
       .condition = savesWork,
       .build = [](const Match& m, Builder& b) -> Values {
         const Range r(m.root());
         std::vector<Value> inputs = m.node(0).inputs();
         for (Value& v : inputs) v = sliced(b, v, partOf(r, v.shape()));
         return {like(b, m.node(0), inputs)};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Shape shape{rng.between(2, 4), 3, rng.between(2, 4)};
         const Value x = sampling::input(b, shape), c = sampling::constant(rng, b, sampling::broadcastable(rng, shape));
         const Value y = rng.flip() ? b.exp(x) : b.clip(x, c, b.scalarLike(x, 2));
         return b.slice(y, {.starts = {0, 2, 1}, .sizes = {1, 2, 1}, .steps = {1, -1, 1}});
       }},
      {.name = "hoist-slice-matmul",
       .doc = "Rows of a matrix product need only the rows of its left side.",
       .pattern = op(Op::Slice, {op(Op::MatMul, {any(0), any(1)}).once()}),
       .condition =
           [](const Match& m) {
             const Range r(m.root());
             Range rows(m.root().input(0).shape());
             const size_t row = r.starts.size() - 2;
             rows.starts[row] = r.starts[row];
             rows.sizes[row] = r.sizes[row];
             rows.steps[row] = r.steps[row];
             return r == rows && !r.isEmpty() && m.result().type().elements() < m.root().input(0).type().elements();
           },
       .build = [](const Match& m, Builder& b) -> Values {
         const Range r(m.root());
         const size_t row = r.starts.size() - 2, own = static_cast<size_t>(m[0].rank()) - 2;
         Range rows(m[0].shape());
         rows.starts[own] = r.starts[row];
         rows.sizes[own] = r.sizes[row];
         rows.steps[own] = r.steps[row];
         return {b.matMul(sliced(b, m[0], rows), m[1])};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, {5, 3}), y = sampling::input(b, {rng.between(1, 2), 3, 2});
         const Value product = b.matMul(x, y);
         return b.slice(product,
                        {.starts = {0, 3, 0}, .sizes = {y.dim(0), 2, 2}, .steps = {1, rng.flip() ? 1 : -1, 1}});
       },
       .keeps = Keeps::Rounding},
  };
}

// Operands of a concatenation as a list that a rule changes; the rule applies when the list became shorter.
Values concatOf(const Match& m, Builder& b, const std::vector<Value>& operands) {
  if (operands.size() >= static_cast<size_t>(m.root().inputCount())) return {};
  if (operands.size() == 1) return {operands.front()};
  return {b.concat(operands, {.axis = m.root().attrs().integer("axis")})};
}

// Two slices of one value that follow on each other along an axis, as one; or nothing.
std::optional<Range> followOn(const Range& first, const Range& second, size_t axis) {
  if (first.sizes[axis] == 0 || second.sizes[axis] == 0) return std::nullopt;
  const int64_t step = first.sizes[axis] > 1 ? first.steps[axis] : second.starts[axis] - first.starts[axis];
  if (step == 0 || second.starts[axis] != first.starts[axis] + first.sizes[axis] * step) return std::nullopt;
  if (second.sizes[axis] > 1 && second.steps[axis] != step) return std::nullopt;
  Range both = first;
  both.sizes[axis] += second.sizes[axis];
  both.steps[axis] = step;
  Range other = second;
  other.starts[axis] = both.starts[axis];
  other.sizes[axis] = both.sizes[axis];
  other.steps[axis] = both.steps[axis];
  if (other != both) return std::nullopt;
  return both;
}

Values joinSlices(const Match& m, Builder& b) {
  const auto axis = static_cast<size_t>(m.root().attrs().integer("axis"));
  std::vector<Value> operands;
  for (const Value v : m.root().inputs()) {
    const auto isSlice = [](Value operand) { return operand.node->op() == Op::Slice && !operand.node->predicate(); };
    if (!operands.empty() && isSlice(v) && isSlice(operands.back()) &&
        operands.back().node->input(0) == v.node->input(0)) {
      if (const auto both = followOn(Range(*operands.back().node), Range(*v.node), axis)) {
        const Value source = v.node->input(0);
        operands.back() = b.slice(source, {.starts = both->starts, .sizes = both->sizes, .steps = both->steps});
        continue;
      }
    }
    operands.push_back(v);
  }
  return concatOf(m, b, operands);
}

// Whether a concatenation is only read by another one along the same axis, which takes its operands as its own.
bool isPartOfConcat(const Node& node) {
  if (node.op() != Op::Concat || node.predicate() || node.uses().size() != 1) return false;
  const Node& user = *node.uses().front().user;
  const bool rows = user.predicate() && user.predicate().rank() != 0;  // rules leave such nodes alone
  return user.op() == Op::Concat && !rows && user.attrs() == node.attrs();
}

// The operands with those of nested concatenations in their place, at any depth. Doing all depths at once keeps a chain
// that appends one operand after the other from being copied at each link.
std::vector<Value> flattened(const Node& root) {
  std::vector<Value> parts;
  std::vector<Value> waiting = root.inputs();
  std::reverse(waiting.begin(), waiting.end());
  while (!waiting.empty()) {
    const Value v = waiting.back();
    waiting.pop_back();
    if (!isPartOfConcat(*v.node)) {
      parts.push_back(v);
      continue;
    }
    const std::vector<Value> inner = v.node->inputs();
    waiting.insert(waiting.end(), inner.rbegin(), inner.rend());
  }
  return parts;
}

Values joinConstants(const Match& m, Builder& b) {
  std::vector<Value> operands;
  std::vector<Value> run;
  const auto flush = [&] {
    if (run.size() > 1) run = {b.concat(run, {.axis = m.root().attrs().integer("axis")})};
    operands.insert(operands.end(), run.begin(), run.end());
    run.clear();
  };
  for (const Value v : m.root().inputs()) {
    if (!isConstant(v)) flush();
    (isConstant(v) ? run : operands).push_back(v);
  }
  if (operands.empty()) return {};
  flush();
  return concatOf(m, b, operands);
}

std::vector<Rule> concatenations() {
  return {
      {.name = "concat-one",
       .doc = "A concatenation of one operand.",
       .pattern = op(Op::Concat, {any(0)}),
       .condition = [](const Match& m) { return m.root().inputCount() == 1; },
       .build = [](const Match& m, Builder&) -> Values { return {m[0]}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         return b.concat({sampling::input(b, sampling::shape(rng, 1, 3), sampling::anyKind(rng))}, {.axis = 0});
       }},
      {.name = "concat-empty",
       .doc = "Operands without elements add nothing to a concatenation.",
       .pattern = op(Op::Concat),
       .condition = [](const Match& m) { return m.result().type().elements() > 0; },
       .build = [](const Match& m, Builder& b) -> Values {
         std::vector<Value> operands = m.root().inputs();
         std::erase_if(operands, [](Value v) { return v.type().elements() == 0; });
         return concatOf(m, b, operands);
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value none = sampling::input(b, {0, 2}), x = sampling::input(b, {rng.between(1, 3), 2});
         return b.concat(rng.flip() ? std::vector{x, none} : std::vector{none, x, x}, {.axis = 0});
       }},
      {.name = "concat-concat",
       .doc = "A concatenation of concatenations along the same axis is one.",
       .pattern = op(Op::Concat),
       .condition = [](const Match& m) { return !isPartOfConcat(m.root()); },
       .build = [](const Match& m, Builder& b) -> Values {
         const std::vector<Value> parts = flattened(m.root());
         if (parts.size() == static_cast<size_t>(m.root().inputCount()) && parts == m.root().inputs()) return {};
         return {b.concat(parts, {.axis = m.root().attrs().integer("axis")})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, {2, rng.between(1, 3)}), y = sampling::input(b, {2, 2});
         const Value inner = b.concat({x, y}, {.axis = 1});
         return b.concat(rng.flip() ? std::vector{y, inner} : std::vector{inner, x, b.concat({y, y}, {.axis = 1})},
                         {.axis = 1});
       }},
      {.name = "concat-constants",
       .doc = "Constants that stand side by side in a concatenation are one.",
       .pattern = op(Op::Concat),
       .build = joinConstants,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, {2, 2}), c = sampling::constant(rng, b, {2, rng.between(1, 3)});
         return b.concat(rng.flip() ? std::vector{c, c, x} : std::vector{x, c, c, x, c, c, c}, {.axis = 1});
       }},
      {.name = "concat-slices",
       .doc = "Slices that follow on each other in their source, and here as well, are one.",
       .pattern = op(Op::Concat),
       .build = joinSlices,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, {6, 3});
         const int64_t step = rng.pick<int64_t>({1, 1, -1}), start = step > 0 ? 0 : 5, first = rng.between(1, 3);
         const auto part = [&](int64_t from, int64_t size) {
           return b.slice(x, {.starts = {start + from * step, 1}, .sizes = {size, 2}, .steps = {step, 1}});
         };
         return b.concat({part(0, first), part(first, 1), part(first + 1, 2)}, {.axis = 0});
       }},
  };
}

// The place, step and number of elements that known indices name, when they form a row; a step of 0 says that they do
// not.
struct Row {
  int64_t start = 0, step = 0, count = 0;
};

Row rowOf(const Match& m) {
  const int64_t extent = m[0].dim(static_cast<int>(m.root().attrs().integer("axis")));
  Ints indices = m.tensor(1).toInts();
  if (indices.empty()) return {};
  for (int64_t& i : indices) {
    if (i < 0) i += extent;
    if (i < 0 || i >= extent) return {};
  }
  Row row{indices.front(), indices.size() > 1 ? indices[1] - indices[0] : 1, static_cast<int64_t>(indices.size())};
  for (size_t i = 1; i < indices.size(); ++i)
    if (indices[i] - indices[i - 1] != row.step) return {};
  return row;
}

std::vector<Rule> lookups() {
  return {
      {.name = "gather-row",
       .doc = "A lookup at known places that form a row is a slice.",
       .pattern = op(Op::Gather, {any(0), constant(1)}),
       .condition = [](const Match& m) { return !hasScaledAxis(m[0]) && rowOf(m).step != 0; },
       .build = [](const Match& m, Builder& b) -> Values {
         const auto axis = static_cast<size_t>(m.root().attrs().integer("axis"));
         const Row row = rowOf(m);
         Range r(m[0].shape());
         r.starts[axis] = row.start;
         r.sizes[axis] = row.count;
         r.steps[axis] = row.step;
         return {b.reshaped(sliced(b, m[0], r), m.result().shape().dims())};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, {3, 4, 2});
         const Tensor indices = rng.pick<Tensor>({Tensor::scalar(ElemKind::Int64, -1), Tensor::ints({1, 2}),
                                                  Tensor::ints({2, 1, 0}), Tensor::scalar(ElemKind::Int32, 1)});
         return b.gather(x, b.constant(indices), {.axis = rng.between(0, 1)});
       }},
  };
}

}  // namespace

std::vector<Rule> sliceRules() { return joined({slices(), concatenations(), lookups()}); }

}  // namespace aglow
