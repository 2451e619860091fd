// Rows of operators that keep channels in blocks. The lanes are one more axis after the spatial ones, which windows,
// reductions and lookups leave alone.
#include "backends/cpu/layout/blocked_ops.h"

#include <algorithm>

#include "graph/op_views.h"

namespace aglow {

using Ints = std::vector<int64_t>;

namespace {

bool firstFollows(Node&, int slot) { return slot == 0; }
bool allFollow(Node&, int) { return true; }

Value remade(Node& node, BlockSource& source, const std::vector<Value>& inputs, Attrs attrs) {
  const Value y = source.b.make(inputs, std::move(attrs))->result();
  return source.b.reshaped(y, source.blocks.dims(node.type().shape()));
}

// ---------------------------------------------------------------- elementwise

// A shape with axes of extent 1 in front, up to a rank.
Ints aligned(const Shape& shape, int rank) {
  Ints dims(static_cast<size_t>(rank - shape.rank()), 1);
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  return dims;
}

bool elementwiseFits(Node& node, const Blocks&) {
  const std::vector<Value> inputs = node.inputs();
  // One element broadcasts as a scalar, in which no lanes are left.
  return node.type().elements() > 1 &&
         std::all_of(inputs.begin(), inputs.end(), [](Value v) { return !v || !isQuantized(v.kind()); });
}

// An operand without an own value for each channel broadcasts as it is.
bool elementwiseFollows(Node& node, int slot) {
  const Value v = node.input(slot);
  return v.rank() == node.type().rank() && v.dim(1) == node.type().dim(1);
}

Value elementwise(Node& node, BlockSource& source) {
  std::vector<Value> inputs = node.inputs();
  for (Value& v : inputs)
    if (v) v = source.broadcast(v, node.type().shape());
  Attrs attrs = node.attrs();
  if (node.op() == Op::Expand) attrs.set("shape", source.blocks.dims(node.type().shape()));
  return remade(node, source, inputs, std::move(attrs));
}

// ---------------------------------------------------------------- windows and reductions

Value pool(Node& node, BlockSource& source) {
  Attrs attrs = node.attrs();
  for (const std::string_view name : {"kernel", "strides", "dilations"})
    attrs.set(name, Blocks::spatialList(attrs.ints(name), 1, 1));
  attrs.set("sizes", Blocks::spatialList(attrs.ints("sizes"), 1, source.blocks.lanesOf(node.type().dim(1))));
  const Ints& pads = attrs.ints("pads");
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(pads.size() / 2);
  Ints before = Blocks::spatialList({pads.begin(), middle}, 0, 0);
  const Ints after = Blocks::spatialList({middle, pads.end()}, 0, 0);
  before.insert(before.end(), after.begin(), after.end());
  attrs.set("pads", before);
  return remade(node, source, {source.blocked(node.input(0))}, std::move(attrs));
}

// Over all axes but the channels', of which those in front stay as they are.
bool reduceFits(Node& node, const Blocks&) {
  const Ints& axes = node.attrs().ints("axes");
  const bool keepsBatch = node.attrs().flag("keepdims") || std::find(axes.begin(), axes.end(), 0) == axes.end();
  return keepsBatch && std::find(axes.begin(), axes.end(), 1) == axes.end();
}

Value reduce(Node& node, BlockSource& source) {
  Attrs attrs = node.attrs();
  Ints axes = attrs.ints("axes");
  for (int64_t& axis : axes) axis = Blocks::axis(axis, node.input(0).rank());
  attrs.set("axes", axes).set("keepdims", int64_t{1});
  return remade(node, source, {source.blocked(node.input(0))}, std::move(attrs));
}

// ---------------------------------------------------------------- moves

// Only the last part of a row of blocks may end inside of one.
bool concatFits(Node& node, const Blocks& blocks) {
  if (node.attrs().integer("axis") != 1 || blocks.isWhole()) return true;
  for (int i = 0; i + 1 < node.inputCount(); ++i)
    if (node.input(i).dim(1) % blocks.lanes() != 0) return false;
  return true;
}

Value concat(Node& node, BlockSource& source) {
  std::vector<Value> inputs = node.inputs();
  for (Value& v : inputs) v = source.blocked(v);
  Attrs attrs = node.attrs();
  attrs.set("axis", int64_t{source.blocks.axisOrChannels(attrs.integer("axis"), node.type().rank())});
  return remade(node, source, inputs, std::move(attrs));
}

// Whole blocks of channels, from the start of one.
bool sliceFits(Node& node, const Blocks& blocks) {
  const SliceNode v(node);
  return blocks.isWhole() || (v.starts()[1] % blocks.lanes() == 0 && (v.steps().empty() || v.steps()[1] == 1));
}

Value slice(Node& node, BlockSource& source) {
  const SliceNode v(node);
  const Value x = source.blocked(node.input(0));
  const auto rank = static_cast<size_t>(x.rank());
  SliceAttrs attrs{.starts = Ints(rank, 0), .sizes = source.blocks.dims(node.type().shape()), .steps = Ints(rank, 1)};
  for (int axis = 0; axis < node.type().rank(); ++axis) {
    const auto from = static_cast<size_t>(axis),
               to = static_cast<size_t>(source.blocks.axisOrChannels(axis, node.type().rank()));
    const bool blocks = axis == 1 && !source.blocks.isWhole();
    attrs.starts[to] = blocks ? v.starts()[1] / source.blocks.lanes() : v.starts()[from];
    if (!v.steps().empty()) attrs.steps[to] = v.steps()[from];
  }
  return source.b.slice(x, attrs);
}

// Channels are added in whole blocks, and only after a whole one.
bool padFits(Node& node, const Blocks& blocks) {
  const PadNode v(node);
  if (blocks.isWhole() || (v.before()[1] == 0 && v.after()[1] == 0)) return true;
  return v.before()[1] % blocks.lanes() == 0 && v.x().dim(1) % blocks.lanes() == 0;
}

Value pad(Node& node, BlockSource& source) {
  const PadNode v(node);
  const Value x = source.blocked(v.x());
  const Ints dims = source.blocks.dims(node.type().shape());
  PadAttrs attrs{.before = Ints(dims.size(), 0), .after = Ints(dims.size(), 0)};
  for (int axis = 0; axis < node.type().rank(); ++axis) {
    const auto from = static_cast<size_t>(axis),
               to = static_cast<size_t>(source.blocks.axisOrChannels(axis, node.type().rank()));
    const bool blocks = axis == 1 && !source.blocks.isWhole();
    attrs.before[to] = blocks ? v.before()[1] / source.blocks.lanes() : v.before()[from];
    attrs.after[to] = dims[to] - x.dim(static_cast<int>(to)) - attrs.before[to];
  }
  return source.b.pad(x, source.planar(v.value()), attrs);
}

bool gatherFits(Node& node, const Blocks&) {
  const int64_t axis = node.attrs().integer("axis");
  return axis >= 2 || (axis == 0 && node.input(1).rank() == 1);
}

Value gather(Node& node, BlockSource& source) {
  Attrs attrs = node.attrs();
  attrs.set("axis", int64_t{Blocks::axis(attrs.integer("axis"), node.input(0).rank())});
  return remade(node, source, {source.blocked(node.input(0)), source.planar(node.input(1))}, std::move(attrs));
}

bool reshapeFits(Node& node, const Blocks&) {
  const Shape& from = node.input(0).shape();
  return from.rank() >= 2 && from[0] == node.type().dim(0) && from[1] == node.type().dim(1);
}

Value reshape(Node& node, BlockSource& source) {
  return source.b.reshaped(source.blocked(node.input(0)), source.blocks.dims(node.type().shape()));
}

bool transposeFits(Node& node, const Blocks&) {
  const Ints& perm = node.attrs().ints("perm");
  return (perm[0] == 0 && perm[1] == 1) || leadsFromChannelsLast(node);
}

bool transposeFollows(Node& node, int) { return !leadsFromChannelsLast(node); }

Value transpose(Node& node, BlockSource& source) {
  if (leadsFromChannelsLast(node)) return source.blocks.fromChannelsLast(source.b, source.planar(node.input(0)));
  const Value x = source.blocked(node.input(0));
  Ints perm;
  for (int64_t axis = 0; axis < x.rank(); ++axis) perm.push_back(axis);
  for (int axis = 0; axis < node.type().rank(); ++axis)
    perm[static_cast<size_t>(Blocks::axis(axis, node.type().rank()))] =
        Blocks::axis(node.attrs().ints("perm")[static_cast<size_t>(axis)], node.type().rank());
  return source.b.transposed(x, perm);
}

Value splat(Node& node, BlockSource& source) {
  return source.b.make({}, Attrs(node.attrs()).set("shape", source.blocks.dims(node.type().shape())))->result();
}

bool always(Node&, const Blocks&) { return true; }

// ---------------------------------------------------------------- the table

struct Row {
  Op op;
  BlockedOp form;
};

constexpr Row kRows[] = {
    {Op::MaxPool, {always, firstFollows, pool}},
    {Op::AvgPool, {always, firstFollows, pool}},
    {Op::Reduce, {reduceFits, firstFollows, reduce}},
    {Op::Concat, {concatFits, allFollow, concat}},
    {Op::Slice, {sliceFits, firstFollows, slice}},
    {Op::Pad, {padFits, firstFollows, pad}},
    {Op::Gather, {gatherFits, firstFollows, gather}},
    {Op::Reshape, {reshapeFits, firstFollows, reshape}},
    {Op::Transpose, {transposeFits, transposeFollows, transpose}},
    {Op::Cast, {elementwiseFits, elementwiseFollows, elementwise}},
    {Op::Lookup, {elementwiseFits, elementwiseFollows, elementwise}},
    {Op::Splat, {always, allFollow, splat}},
};
constexpr BlockedOp kElementwise{elementwiseFits, elementwiseFollows, elementwise};

Ints channelsLastOrder(int rank) {
  Ints perm{0};
  for (int64_t axis = 2; axis < rank; ++axis) perm.push_back(axis);
  perm.push_back(1);
  return perm;
}

}  // namespace

const BlockedOp* findBlockedOp(const Node& node) {
  if (node.def().kind == OpKind::Elementwise) return &kElementwise;
  for (const Row& row : kRows)
    if (row.op == node.op()) return &row.form;
  return nullptr;
}

bool leadsToChannelsLast(const Node& node) {
  return node.op() == Op::Transpose && Blocks::canHold(node.type()) && node.type().rank() >= 3 &&
         node.attrs().ints("perm") == channelsLastOrder(node.type().rank());
}

bool leadsFromChannelsLast(const Node& node) {
  if (node.op() != Op::Transpose || node.type().rank() < 3) return false;
  Ints perm{0, node.type().rank() - 1};
  for (int64_t axis = 1; axis < node.type().rank() - 1; ++axis) perm.push_back(axis);
  return node.attrs().ints("perm") == perm;
}

bool observesChannels(const Node& node) {
  return node.op() == Op::Observe && !node.predicate() && node.attrs().integer("axis") == 1 &&
         !node.attrs().flag("blocked");
}

Value BlockSource::broadcast(Value v, const Shape& result) {
  const Constant* constant = asConstant(v);
  if (v.type().elements() == 1) {
    if (v.rank() == 0) return v;
    if (constant != nullptr) return b.constant(constant->tensor().retyped(v.type().withShape(Shape{})));
    return b.reshaped(planar(v), {});
  }
  Ints dims = aligned(v.shape(), result.rank());
  const bool perChannel = dims[1] == result[1];
  if (perChannel && constant != nullptr)
    return b.constant(blocks.tensor(constant->tensor().retyped(v.type().withShape(Shape(dims)))));
  if (perChannel && v.rank() == result.rank()) return blocked(v);
  if (perChannel) return blocks.fromPlanar(b, b.reshaped(planar(v), dims));
  // One value for all channels of a block: the lanes' axis has extent 1.
  const Ints shape = Blocks(1).dims(Shape(dims));
  if (constant != nullptr) return b.constant(constant->tensor().retyped(v.type().withShape(Shape(shape))));
  return b.reshaped(planar(v), shape);
}

}  // namespace aglow
