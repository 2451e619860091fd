// Padding: merged, and taken over by the windows of convolutions and pools.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "graph/op_views.h"
#include "ops/axes.h"
#include "ops/window.h"
#include "optimize/building.h"
#include "optimize/rules.h"
#include "optimize/sampling.h"

namespace aglow {

using namespace pattern;  // NOLINT: the rules' own language

namespace {

bool isAllZero(const Ints& list) {
  return std::all_of(list.begin(), list.end(), [](int64_t n) { return n == 0; });
}

// The same value: one and the same, or the same number.
bool sameNumber(Value a, Value b) {
  if (a == b) return true;
  const std::optional<double> x = splatValue(a), y = splatValue(b);
  return x && y && *x == *y;
}

// Whether padding touches only spatial axes.
bool isSpatial(const Node& pad) {
  const Ints &before = pad.attrs().ints("before"), &after = pad.attrs().ints("after");
  return before.size() > 2 && before[0] == 0 && before[1] == 0 && after[0] == 0 && after[1] == 0;
}

// The pads of a window with those of a Pad node around them.
Ints joinedPads(const Attrs& window, const Node& pad) {
  const Ints &before = pad.attrs().ints("before"), &after = pad.attrs().ints("after");
  const size_t axes = before.size() - 2;
  Ints pads = filled(window.ints("pads"), static_cast<int>(2 * axes), 0);
  for (size_t i = 0; i < axes; ++i) {
    pads[i] += before[i + 2];
    pads[axes + i] += after[i + 2];
  }
  return pads;
}

// Whether every window of a pool would still hold an element of x.
bool windowsReachIn(const Attrs& pool, const Ints& pads) {
  const Result<Window> window = windowOf(pool, pool.ints("kernel"));
  const size_t axes = pads.size() / 2;
  for (size_t i = 0; i < axes; ++i) {
    const int64_t reach = window->reach(static_cast<int>(i));
    if (pads[i] >= reach || pads[axes + i] >= reach) return false;
  }
  return true;
}

// A pool of padded x as a pool with padding. The result keeps its extents.
Attrs paddedPool(const Match& m, int pad) {
  Attrs attrs = m.root().attrs();
  const Ints& dims = m.result().shape().dims();
  attrs.set("pads", joinedPads(attrs, m.node(pad)));
  return attrs.set("sizes", Ints(dims.begin() + 2, dims.end()));
}

bool poolTakesPad(const Match& m, int pad) {
  return isSpatial(m.node(pad)) && windowsReachIn(m.root().attrs(), joinedPads(m.root().attrs(), m.node(pad)));
}

double lowest(ElemKind kind) {
  if (isFloat(kind)) return -std::numeric_limits<double>::infinity();
  return isUnsigned(kind) ? 0 : -std::ldexp(1.0, elemInfo(kind).bits - 1);
}

// Two padded values of which each has its elements where the other one's padding begins or ends, along one axis.
struct Neighbours {
  size_t axis = 0;
  bool firstLeads = true;
};

std::optional<Neighbours> neighbours(const Node& first, const Node& second) {
  if (first.type().shape() != second.type().shape()) return std::nullopt;
  const Ints &a = first.attrs().ints("before"), &b = second.attrs().ints("before");
  const Ints &aEnd = first.attrs().ints("after"), &bEnd = second.attrs().ints("after");
  std::optional<Neighbours> found;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == 0 && b[i] == 0 && aEnd[i] == 0 && bEnd[i] == 0) continue;
    const int64_t extent = first.type().dim(static_cast<int>(i));
    const bool firstLeads = extent - aEnd[i] == b[i];
    if (found || (!firstLeads && extent - bEnd[i] != a[i])) return std::nullopt;
    found = {i, firstLeads};
  }
  return found;
}

Value samplePad(Rng& rng, Builder& b, Value x, double value, int64_t most) {
  const auto amount = [&] { return rng.between(0, most); };
  return b.pad(x, b.scalarLike(x, value), {.before = {0, 0, amount(), amount()}, .after = {0, 0, amount(), amount()}});
}

}  // namespace

std::vector<Rule> padRules() {
  return {
      {.name = "pad-nothing",
       .doc = "Padding of no width.",
       .pattern = op(Op::Pad, {any(0)}),
       .condition = [](const Match& m) { return m[0].shape() == m.result().shape(); },
       .build = [](const Match& m, Builder&) -> Values { return {m[0]}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         const Ints none(static_cast<size_t>(x.rank()), 0);
         return b.pad(x, b.scalarLike(x, 1), {.before = none, .after = none});
       }},
      {.name = "pad-pad",
       .doc = "Padding around padding with the same value is one.",
       .pattern = op(Op::Pad, {op(Op::Pad, {any(0), any(1)}).as(2), any(3)}),
       .condition = [](const Match& m) { return sameNumber(m[1], m[3]); },
       .build = [](const Match& m, Builder& b) -> Values {
         const PadNode inner(m.node(2)), outer(m.root());
         Ints before = inner.before(), after = inner.after();
         for (size_t i = 0; i < before.size(); ++i) {
           before[i] += outer.before()[i];
           after[i] += outer.after()[i];
         }
         return {b.pad(m[0], m[1], {.before = before, .after = after})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, {1, 2, 3, 2});
         return samplePad(rng, b, samplePad(rng, b, x, 2, 2), 2, 2);
       }},
      {.name = "add-pads",
       .doc = "Neighbours that are padded to the same extent and added, as gradients of slices are, lie side by side.",
       .pattern = op(Op::Add,
                     {op(Op::Pad, {any(0), literal(0)}).once().as(1), op(Op::Pad, {any(2), literal(0)}).once().as(3)}),
       .condition = [](const Match& m) { return neighbours(m.node(1), m.node(3)).has_value(); },
       .build = [](const Match& m, Builder& b) -> Values {
         const auto [axis, firstLeads] = *neighbours(m.node(1), m.node(3));
         const PadNode leading(firstLeads ? m.node(1) : m.node(3)), trailing(firstLeads ? m.node(3) : m.node(1));
         Ints before = leading.before(), after = trailing.after();
         const Value both = b.concat({leading.x(), trailing.x()}, {.axis = static_cast<int64_t>(axis)});
         return {b.pad(both, leading.value(), {.before = before, .after = after})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const int64_t first = rng.between(1, 3), second = rng.between(1, 3), before = rng.between(0, 2);
         const Value x = sampling::input(b, {2, first}), y = sampling::input(b, {2, second}), zero = b.scalarLike(x, 0);
         const int64_t after = rng.between(0, 2);
         const Value p = b.pad(x, zero, {.before = {0, before}, .after = {0, after + second}});
         const Value q = b.pad(y, zero, {.before = {0, before + first}, .after = {0, after}});
         return rng.flip() ? b.add(p, q) : b.add(q, p);
       },
       .keeps = Keeps::Rounding},
      {.name = "pad-conv",
       .doc = "A convolution pads with zeros by itself. Relaxed: infinite weights no longer meet these zeros.",
       .pattern = op(Op::Conv, {op(Op::Pad, {any(0), literal(0)}).as(1), any(2)}),
       .condition = [](const Match& m) { return isSpatial(m.node(1)); },
       .build = [](const Match& m, Builder& b) -> Values {
         Attrs attrs = m.root().attrs();
         attrs.set("pads", joinedPads(attrs, m.node(1)));
         return {b.make({m[0], m[2], m.root().input(2)}, attrs)->result()};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = samplePad(rng, b, sampling::input(b, {1, 2, 4, 3}), 0, 2);
         const Value bias = rng.flip() ? sampling::input(b, {4}) : Value{};
         return b.conv(x, sampling::constant(rng, b, {4, 2, 3, 2}), bias,
                       {.strides = {rng.between(1, 2), 1}, .pads = {0, 1, rng.between(0, 1), 1}});
       },
       .keeps = Keeps::Finite},
      {.name = "pad-max-pool",
       .doc = "Padding with the lowest value never wins, like a pool's own.",
       .pattern = op(Op::MaxPool, {op(Op::Pad, {any(0), number(2)}).as(1)}),
       .condition = [](const Match& m) { return m.number(2) == lowest(m[0].kind()) && poolTakesPad(m, 1); },
       .build = [](const Match& m, Builder& b) -> Values { return {b.make({m[0]}, paddedPool(m, 1))->result()}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const ElemKind kind = rng.pick<ElemKind>({ElemKind::Float32, ElemKind::Int8, ElemKind::UInt8});
         const Value x = samplePad(rng, b, sampling::input(b, {1, 2, 4, 4}, kind), lowest(kind), 2);
         return b.maxPool(x, {.kernel = {3, 4}, .strides = {rng.between(1, 2), 1}, .pads = {0, 0, 0, 1}});
       }},
      {.name = "pad-avg-pool",
       .doc = "Padding with zeros that a mean counts, like a pool's own.",
       .pattern = op(Op::AvgPool, {op(Op::Pad, {any(0), literal(0)}).as(1)}),
       .condition =
           [](const Match& m) {
             const Attrs& pool = m.root().attrs();
             return (pool.flag("count_include_pad") || isAllZero(pool.ints("pads"))) && poolTakesPad(m, 1);
           },
       .build = [](const Match& m, Builder& b) -> Values {
         return {b.make({m[0]}, paddedPool(m, 1).set("count_include_pad", int64_t{1}))->result()};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = samplePad(rng, b, sampling::input(b, {1, 2, 4, 4}), 0, 2);
         const Ints strides{rng.between(1, 2), 1};
         if (rng.flip()) return b.avgPool(x, {.kernel = {3, 3}, .strides = strides});
         return b.avgPool(x, {.kernel = {3, 4}, .strides = strides, .pads = {0, 0, 0, 1}, .countIncludePad = true});
       }},
  };
}

}  // namespace aglow
