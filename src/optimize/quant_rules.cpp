// Quantized values: products of them are computed with their integers, moves of elements move integers, and what stands
// between two quantizations shares one scale.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "graph/op_views.h"
#include "ops/axes.h"
#include "optimize/building.h"
#include "optimize/rules.h"
#include "optimize/sampling.h"

namespace aglow {

using namespace pattern;  // NOLINT: the rules' own language

namespace {

// ---------------------------------------------------------------- what is quantized, and how

bool isByte(ElemKind kind) { return kind == ElemKind::UInt8 || kind == ElemKind::Int8; }

// One scale or one for each index of an axis, known, of a size at which no product of it with a byte leaves f32.
bool isPlainScale(Value scale) {
  constexpr double kLeast = 1e-30, kMost = 1e30;
  const Constant* constant = asConstant(scale);
  if (constant == nullptr || scale.kind() != ElemKind::Float32) return false;
  const std::vector<double> values = constant->tensor().doubles();
  return std::all_of(values.begin(), values.end(), [](double s) { return s >= kLeast && s <= kMost; });
}

bool isOne(Value v) { return v.type().elements() == 1; }

// Bytes with known scales that stand for f32.
bool isDequantized(Value v) {
  if (v.node->isStorage() || v.node->op() != Op::DequantizeLinear || v.node->predicate()) return false;
  const DequantizeLinearNode d(*v.node);
  return d.blockSize() == 0 && d.to() == ElemKind::Float32 && isPlainScale(d.scale()) &&
         (!d.offset() || isConstant(d.offset()));
}
bool isDequantizedByOne(Value v) { return isDequantized(v) && isOne(DequantizeLinearNode(*v.node).scale()); }

// Weights, with a scale for each block of an axis.
bool isDequantizedInBlocks(Value v) {
  if (v.node->isStorage() || v.node->op() != Op::DequantizeLinear || v.node->predicate()) return false;
  const DequantizeLinearNode d(*v.node);
  return d.blockSize() != 0 && isConstant(d.x()) && isConstant(d.scale()) && (!d.offset() || isConstant(d.offset()));
}

// Offsets as numbers; 0 where there are none.
std::vector<int64_t> offsetsOf(Value offset, size_t count) {
  return offset ? asConstant(offset)->tensor().toInts() : std::vector<int64_t>(count, 0);
}

bool sameQuantization(Value scaleA, Value offsetA, Value scaleB, Value offsetB) {
  const std::vector<double> a = asConstant(scaleA)->tensor().doubles(), b = asConstant(scaleB)->tensor().doubles();
  return a == b && offsetsOf(offsetA, a.size()) == offsetsOf(offsetB, b.size());
}

// The integers less their offsets, along an axis of the value.
Value centered(Builder& b, Value dequantized) {
  const DequantizeLinearNode d(*dequantized.node);
  const Value wide = b.casted(d.x(), ElemKind::Int32);
  if (!d.offset()) return wide;
  Value offset = b.casted(d.offset(), ElemKind::Int32);
  Ints dims;
  if (!isOne(offset)) {
    dims.assign(static_cast<size_t>(wide.rank()), 1);
    dims[static_cast<size_t>(axisFromFront(d.axis(), wide.rank()))] = offset.type().elements();
  }
  const std::vector<int64_t> values = asConstant(d.offset())->tensor().toInts();
  if (std::all_of(values.begin(), values.end(), [](int64_t v) { return v == 0; })) return wide;
  return b.sub(wide, b.reshaped(offset, dims));
}

// Sums of so many products of bytes less their offsets stay within i32.
bool sumsFit(int64_t products) {
  constexpr int64_t kLargest = 255 * 255;
  return products <= std::numeric_limits<int32_t>::max() / kLargest;
}

// ---------------------------------------------------------------- products

// Weights that are bytes, with one scale or one for each index of `axis`.
bool areByteWeights(Value v, int axis) {
  if (!isDequantized(v)) return false;
  const DequantizeLinearNode d(*v.node);
  return isConstant(d.x()) && isByte(d.x().kind()) && (isOne(d.scale()) || axisFromFront(d.axis(), v.rank()) == axis);
}

bool isByteImage(Value v) { return isDequantizedByOne(v) && isByte(v.node->input(0).kind()); }

Value scalesOf(Builder& b, Value x, Value weights) {
  const Value one = b.reshaped(DequantizeLinearNode(*x.node).scale(), {});
  const Value scale = DequantizeLinearNode(*weights.node).scale();
  return b.mul(one, isOne(scale) ? b.reshaped(scale, {}) : scale);
}

// Integers of a bias whose scale is that of the products, as quantizers write them; nothing for another one.
Value integerBias(Value bias, Value x, Value weights) {
  constexpr double kNear = 1e-5;
  if (!isDequantized(bias) || bias.rank() != 1 || bias.node->input(0).kind() != ElemKind::Int32) return {};
  const DequantizeLinearNode d(*bias.node);
  const std::vector<int64_t> offsets = offsetsOf(d.offset(), 1);
  if (std::any_of(offsets.begin(), offsets.end(), [](int64_t z) { return z != 0; })) return {};
  const auto scales = [](Value v) { return asConstant(DequantizeLinearNode(*v.node).scale())->tensor().doubles(); };
  const std::vector<double> own = scales(bias), one = scales(x), many = scales(weights);
  for (size_t i = 0; i < std::max(own.size(), many.size()); ++i) {
    const double expected = one.front() * many[many.size() == 1 ? 0 : i], got = own[own.size() == 1 ? 0 : i];
    if (std::abs(got - expected) > kNear * expected) return {};
  }
  return d.x();
}

bool isByteConv(const Match& m) {
  const ConvNode conv(m.root());
  return isByteImage(m[0]) && areByteWeights(m[1], 0) && conv.type().rank() <= 4 &&
         sumsFit(m[1].type().elements() / std::max<int64_t>(m[1].dim(0), 1));
}

Values integerConv(const Match& m, Builder& b) {
  const Value bias = m.root().input(2), whole = bias ? integerBias(bias, m[0], m[1]) : Value{};
  const Value sum = like(b, m.root(), {centered(b, m[0]), centered(b, m[1]), whole});
  Ints along(static_cast<size_t>(sum.rank()) - 1, 1);
  along.front() = sum.dim(1);
  const Value scales = scalesOf(b, m[0], m[1]);
  const Value y = b.mul(b.casted(sum, ElemKind::Float32), isOne(scales) ? scales : b.reshaped(scales, along));
  return {!bias || whole ? y : b.add(y, b.reshaped(bias, along))};
}

// Computed bytes with one scale.
bool areBytes(Value v) { return isByteImage(v) && !isConstant(v.node->input(0)); }

bool isByteProduct(const Match& m) {
  if (!isByteImage(m[0]) || m[0].rank() < 2 || !sumsFit(m[0].dim(m[0].rank() - 1))) return false;
  return (m[1].rank() == 2 && areByteWeights(m[1], 1)) || (m[1].rank() >= 2 && areBytes(m[1]));
}

Values integerProduct(const Match& m, Builder& b) {
  const Value sum = b.matMul(centered(b, m[0]), centered(b, m[1]));
  return {b.mul(b.casted(sum, ElemKind::Float32), scalesOf(b, m[0], m[1]))};
}

// Attention whose weights are rounded, of bytes: their products are those of integers.
bool isByteAttention(const Match& m) {
  const AttentionNode v(m.root());
  return v.rounded() && v.softcap() == 0 && v.precision() == ElemKind::Float32 && m.root().useCount(1) == 0 &&
         areBytes(m[0]) && areBytes(m[1]) && areBytes(m[2]) && sumsFit(m[0].dim(3)) && sumsFit(m[1].dim(2));
}

Values integerAttention(const Match& m, Builder& b) {
  const AttentionNode v(m.root());
  const DequantizeLinearNode q(m.node(0)), k(m.node(1)), values(m.node(2));
  const auto offset = [](const DequantizeLinearNode& d) { return offsetsOf(d.offset(), 1).front(); };
  return {b.byteAttention(q.x(), k.x(), values.x(), v.mask(),
                          {.scale = v.scale() * *splatValue(q.scale()) * *splatValue(k.scale()),
                           .vScale = *splatValue(values.scale()),
                           .qOffset = offset(q),
                           .kOffset = offset(k),
                           .vOffset = offset(values),
                           .left = v.left(),
                           .right = v.right(),
                           .offset = v.offset()})};
}

// ---------------------------------------------------------------- moves

// Operators that take elements of their first operand and put them elsewhere.
OpSet movers() { return opSet({Op::Transpose, Op::Reshape, Op::Slice, Op::Expand, Op::Gather, Op::MaxPool}); }

bool isMoved(const Match& m) {
  if (m.root().resultCount() != 1 || !isDequantized(m[0])) return false;
  return isDequantizedByOne(m[0]) || m.root().op() == Op::Transpose;
}

Values moveIntegers(const Match& m, Builder& b) {
  const DequantizeLinearNode d(m.node(0));
  std::vector<Value> inputs = m.root().inputs();
  inputs.front() = d.x();
  const Value moved = like(b, m.root(), inputs);
  int64_t axis = axisFromFront(d.axis(), std::max(d.x().rank(), 1));
  if (isOne(d.scale())) {
    axis = 0;
  } else {
    const Ints& perm = m.root().attrs().ints("perm");
    axis = std::find(perm.begin(), perm.end(), axis) - perm.begin();
  }
  return {b.dequantizeLinear(moved, d.scale(), d.offset(), {.axis = axis, .to = d.to()})};
}

bool isJoined(const Match& m) {
  const std::vector<Value> parts = m.root().inputs();
  if (!std::all_of(parts.begin(), parts.end(), isDequantizedByOne)) return false;
  const DequantizeLinearNode first(*parts.front().node);
  return std::all_of(parts.begin(), parts.end(), [&](Value part) {
    const DequantizeLinearNode d(*part.node);
    return d.x().kind() == first.x().kind() && sameQuantization(d.scale(), d.offset(), first.scale(), first.offset());
  });
}

Values joinIntegers(const Match& m, Builder& b) {
  std::vector<Value> parts = m.root().inputs();
  const DequantizeLinearNode first(*parts.front().node);
  for (Value& part : parts) part = part.node->input(0);
  return {b.dequantizeLinear(like(b, m.root(), parts), first.scale(), first.offset(), {.axis = 0, .to = first.to()})};
}

// ---------------------------------------------------------------- between two scales

bool givesBack(const Match& m) {
  const QuantizeLinearNode q(m.root());
  if (q.blockSize() != 0 || !isDequantized(m[0]) || !isPlainScale(q.scale())) return false;
  const DequantizeLinearNode d(m.node(0));
  if (q.offset() && !isConstant(q.offset())) return false;
  const int rank = std::max(m[0].rank(), 1);
  return isByte(q.type().kind()) && d.x().kind() == q.type().kind() &&
         (isOne(d.scale()) || axisFromFront(d.axis(), rank) == axisFromFront(q.axis(), rank)) &&
         sameQuantization(d.scale(), d.offset(), q.scale(), q.offset());
}

// Whether constants before a value can take a division over, so that it costs nothing.
bool isDivisible(Value v, const Node& reader, int depth) {
  if (v.kind() != ElemKind::Float32 || depth == 0) return false;
  if (isConstant(v)) return true;
  if (v.node->isStorage() || v.node->predicate()) return false;
  if (isDequantized(v)) return true;
  if (!readOnlyBy(v, reader)) return false;
  const auto divisible = [&](int slot) { return isDivisible(v.node->input(slot), *v.node, depth - 1); };
  switch (v.node->op()) {
    case Op::Mul:
      return isConstant(v.node->input(1)) || isConstant(v.node->input(0));
    case Op::Relu:
    case Op::Reshape:
    case Op::Transpose:
      return divisible(0);
    case Op::Add:
    case Op::Sub:
      return divisible(0) && divisible(1);
    default:
      return false;
  }
}

// Such a value, divided.
Value divided(Builder& b, Value v, double by) {
  const auto quotient = [&](Value constant) { return b.div(constant, b.scalar(ElemKind::Float32, by)); };
  if (isConstant(v)) return quotient(v);
  std::vector<Value> inputs = v.node->inputs();
  if (v.node->op() == Op::DequantizeLinear || v.node->op() == Op::Mul) {
    Value& factor = isConstant(inputs[1]) ? inputs[1] : inputs[0];
    factor = quotient(factor);
  } else {
    for (Value& in : inputs) in = divided(b, in, by);
  }
  return like(b, *v.node, inputs);
}

constexpr int kDivisionDepth = 8;

// Constants alone are folded, and need no rule.
bool isRescaled(const Match& m) {
  const QuantizeLinearNode q(m.root());
  return q.blockSize() == 0 && isByte(q.type().kind()) && isOne(q.scale()) && isPlainScale(q.scale()) &&
         *splatValue(q.scale()) != 1 && !isConstant(m[0]) && !isDequantized(m[0]) &&
         isDivisible(m[0], m.root(), kDivisionDepth);
}

Values rescale(const Match& m, Builder& b) {
  const QuantizeLinearNode q(m.root());
  const Value x = divided(b, m[0], *splatValue(q.scale()));
  return {like(b, m.root(), {x, b.scalar(ElemKind::Float32, 1), q.offset()})};
}

// Saturation cuts at the offset what is less than zero.
bool saturatesAtZero(const Match& m) {
  const QuantizeLinearNode q(m.root());
  if (q.blockSize() != 0 || !isOne(q.scale()) || !isPlainScale(q.scale()) || !isByte(q.type().kind())) return false;
  if (q.offset() && !isConstant(q.offset())) return false;
  return offsetsOf(q.offset(), 1).front() == (q.type().kind() == ElemKind::UInt8 ? 0 : INT8_MIN);
}

// ---------------------------------------------------------------- functions of one byte

// Values that follow from bytes element by element, back to the bytes.
class ByteFunction {
public:
  // Of a value that is quantized to bytes again; the bytes that all of it follows from, or nothing.
  explicit ByteFunction(Value quantized) {
    if (!walk(quantized)) return;
    // Where several are left, some of them may follow from the others.
    while (sources_.size() > 1) {
      const auto it = std::find_if(sources_.begin(), sources_.end(), [&](Value v) { return expands(v); });
      if (it == sources_.end()) return;
      const Value expanded = *it;
      sources_.erase(it);
      if (!walk(expanded)) return;
    }
    if (sources_.size() == 1 && costly_) source_ = sources_.front();
  }

  Value source() const { return source_; }

private:
  static constexpr int kMost = 48;  // nodes

  static bool isKnownOne(Value v) { return isConstant(v) && isOne(v); }

  static bool isLookup(Value v) { return !v.node->isStorage() && !v.node->predicate() && v.node->op() == Op::Lookup; }

  // What bytes are rounded from, with one scale that is known; nothing for others.
  static Value roundedFrom(Value bytes) {
    if (bytes.node->isStorage() || bytes.node->predicate() || bytes.node->op() != Op::QuantizeLinear) return {};
    const QuantizeLinearNode q(*bytes.node);
    if (q.blockSize() != 0 || !isKnownOne(q.scale()) || (q.offset() && !isKnownOne(q.offset()))) return {};
    return q.x();
  }

  // Bytes that are computed from other values element by element.
  static bool expands(Value v) {
    const Value real = roundedFrom(v);
    return isLookup(v) || (real && ByteFunction(real, 0).found_);
  }

  // Whether x follows from bytes at all.
  ByteFunction(Value x, int) { found_ = walkReal(x); }

  bool walk(Value bytes) {
    if (!isByte(bytes.kind())) return false;
    if (isLookup(bytes)) return take(bytes.node->input(0));
    const Value real = roundedFrom(bytes);
    return real && walkReal(real);
  }

  bool take(Value bytes) {
    if (std::find(sources_.begin(), sources_.end(), bytes) == sources_.end()) sources_.push_back(bytes);
    return true;
  }

  bool walkReal(Value v) {
    if (++visited_ > kMost) return false;
    if (isKnownOne(v)) return true;
    if (v.node->isStorage() || v.node->predicate()) return false;
    if (isDequantizedByOne(v) && isByte(v.node->input(0).kind())) return take(v.node->input(0));
    const Op op = v.node->op();
    if (v.node->def().kind != OpKind::Elementwise || op == Op::Expand || v.kind() != ElemKind::Float32) return false;
    costly_ |= !cheap()[static_cast<size_t>(op)];
    const std::vector<Value> inputs = v.node->inputs();
    return std::all_of(inputs.begin(), inputs.end(), [&](Value in) { return !in || walkReal(in); });
  }

  // What costs no more than a lookup.
  static OpSet cheap() {
    return opSet({Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Relu, Op::Clip, Op::Min, Op::Max, Op::Neg, Op::Abs});
  }

  std::vector<Value> sources_;
  Value source_;
  int visited_ = 0;
  bool costly_ = false, found_ = false;
};

// What a value becomes where its source is all 256 bytes.
class TableOf {
public:
  TableOf(const Match& m, Builder& b, Value source) : m_(m), b_(b) {
    std::vector<int64_t> bytes(256);
    std::iota(bytes.begin(), bytes.end(), source.kind() == ElemKind::Int8 ? INT8_MIN : 0);
    known_.emplace_back(source, Tensor::fromInts(Type(source.kind(), Shape{256}), bytes));
  }

  // An empty tensor where the computation fails.
  Tensor of(Value v) {
    for (const auto& [value, tensor] : known_)
      if (value == v) return tensor;
    if (const Constant* constant = asConstant(v)) return constant->tensor();
    std::vector<Value> inputs = v.node->inputs();
    std::vector<Tensor> tensors;
    for (Value& in : inputs) {
      tensors.push_back(in ? of(in) : Tensor());
      if (!in) continue;
      if (tensors.back().empty()) return {};
      in = b_.constant(tensors.back());
    }
    const Value small = like(b_, *v.node, inputs);
    const Result<std::vector<Tensor>> results = m_.evaluator().evaluate(*small.node, tensors);
    if (!results.ok()) return {};
    known_.emplace_back(v, results->front());
    return results->front();
  }

private:
  const Match& m_;
  Builder& b_;
  std::vector<std::pair<Value, Tensor>> known_;
};

Values asTable(const Match& m, Builder& b) {
  const Value source = ByteFunction(m.result()).source();
  const Tensor table = TableOf(m, b, source).of(m.result());
  if (table.empty() || table.type().elements() != 256) return {};
  return {b.lookup(source, {.table = table.toInts(), .to = m.result().kind()})};
}

// ---------------------------------------------------------------- samples

Value someBytes(Rng& rng, Builder& b, const Shape& shape) {
  return sampling::input(b, shape, rng.flip() ? ElemKind::UInt8 : ElemKind::Int8);
}

Value someOffset(Rng& rng, Builder& b, ElemKind kind, const Shape& shape = {}) {
  return rng.flip() ? Value{} : sampling::constant(rng, b, shape, kind, 0, 9);
}

Value someScale(Rng& rng, Builder& b, const Shape& shape = {}) {
  return sampling::constant(rng, b, shape, ElemKind::Float32, 0.01, 0.1);
}

Value sampleReal(Rng& rng, Builder& b, Value bytes) {
  return b.dequantizeLinear(bytes, someScale(rng, b), someOffset(rng, b, bytes.kind()),
                            {.axis = 0, .to = ElemKind::Float32});
}
Value sampleReal(Rng& rng, Builder& b, const Shape& shape) { return sampleReal(rng, b, someBytes(rng, b, shape)); }

// Weights with one scale, or one for each index of an axis.
Value sampleWeights(Rng& rng, Builder& b, const Shape& shape, int axis) {
  const ElemKind kind = rng.flip() ? ElemKind::UInt8 : ElemKind::Int8;
  const Value bytes = sampling::constant(rng, b, shape, kind, kind == ElemKind::UInt8 ? 0 : -128, 127);
  const Shape scales = rng.flip() ? Shape{} : Shape{shape[axis]};
  return b.dequantizeLinear(bytes, someScale(rng, b, scales), someOffset(rng, b, kind, scales),
                            {.axis = axis, .to = ElemKind::Float32});
}

std::vector<Rule> integerRules() {
  return {
      {.name = "integer-conv",
       .doc = "A convolution of quantized values is one of their integers, times the scales.",
       .kinds = kindSet(ElemKind::Float32),
       .pattern = op(Op::Conv, {any(0), any(1)}),
       .condition = isByteConv,
       .build = integerConv,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const int64_t groups = rng.between(1, 2), out = groups * rng.between(1, 2);
         const Value bias = rng.flip() ? sampling::constant(rng, b, {out}) : Value{};
         return b.conv(sampleReal(rng, b, Shape{1, 4, 3, 4}), sampleWeights(rng, b, {out, 4 / groups, 2, 3}, 0), bias,
                       {.pads = {1, 0, 0, 1}, .group = groups});
       },
       .keeps = Keeps::Rounding},
      {.name = "integer-matmul",
       .doc = "A product of quantized values, or by quantized weights, is one of their integers, times the scales.",
       .kinds = kindSet(ElemKind::Float32),
       .pattern = op(Op::MatMul, {any(0), any(1)}),
       .condition = isByteProduct,
       .build = integerProduct,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampleReal(rng, b, rng.flip() ? Shape{2, 4} : Shape{2, 3, 4});
         if (rng.flip()) return b.matMul(x, sampleReal(rng, b, rng.flip() ? Shape{4, 3} : Shape{2, 4, 3}));
         return b.matMul(x, sampleWeights(rng, b, {4, 3}, 1));
       },
       .keeps = Keeps::Rounding},
      {.name = "integer-attention",
       .doc = "Attention of quantized values with rounded weights is that of their integers.",
       .kinds = kindSet(ElemKind::Float32),
       .pattern = op(Op::Attention, {any(0), any(1), any(2)}),
       .condition = isByteAttention,
       .build = integerAttention,
       .sample = [](Rng& rng, Builder& b) -> Value {
         // Scores are exact on both sides, so that their weights are rounded the same way.
         const auto bytes = [&](const Shape& shape) {
           const Value x = someBytes(rng, b, shape);
           return b.dequantizeLinear(x, b.scalar(ElemKind::Float32, 0.125), someOffset(rng, b, x.kind()),
                                     {.axis = 0, .to = ElemKind::Float32});
         };
         const int64_t keys = rng.between(1, 3);
         const Value q = bytes({1, 2, 2, 3}), k = bytes({1, rng.between(1, 2), keys, 3});
         const Value v = bytes({1, k.dim(1), keys, 2});
         const Value mask = rng.flip() ? Value{} : sampling::input(b, {keys}, ElemKind::Bool);
         return b.attention(q, k, v, mask, {.scale = 0.125, .right = rng.between(-1, 0), .rounded = true})->result();
       },
       .keeps = Keeps::Rounding},
  };
}

std::vector<Rule> moveRules() {
  return {
      {.name = "dequantize-later",
       .doc = "What moves elements, or takes the largest of some, does so with their integers.",
       .kinds = kindSet(ElemKind::Float32),
       .pattern = op(movers(), {any(0)}),
       .condition = isMoved,
       .build = moveIntegers,
       .sample = [](Rng& rng, Builder& b) -> Value {
         if (rng.flip())
           return b.transpose(sampleWeights(rng, b, {2, 3, 4}, static_cast<int>(rng.between(0, 2))),
                              {.perm = {2, 0, 1}});
         const Value x = sampleReal(rng, b, Shape{1, 2, 3, 4});
         if (rng.flip()) return b.reshaped(x, {6, 4});
         return rng.flip() ? sampling::slice(rng, b, x) : b.maxPool(x, {.kernel = {2, 2}, .pads = {1, 0, 0, 1}});
       }},
      {.name = "dequantize-blocks-later",
       .doc = "Weights with a scale for each block are transposed as integers, and their scales with them.",
       .pattern = op(Op::Transpose, {any(0)}),
       .condition = [](const Match& m) { return isDequantizedInBlocks(m[0]); },
       .build = [](const Match& m, Builder& b) -> Values {
         const DequantizeLinearNode d(*m[0].node);
         const Ints& perm = m.root().attrs().ints("perm");
         const auto moved = [&](Value v) { return v ? b.transposed(v, perm) : v; };
         const auto axis = std::find(perm.begin(), perm.end(), axisFromFront(d.axis(), d.x().rank())) - perm.begin();
         return {b.dequantizeLinear(moved(d.x()), moved(d.scale()), moved(d.offset()),
                                    {.axis = axis, .blockSize = d.blockSize(), .to = d.to()})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const ElemKind kind = rng.pick<ElemKind>({ElemKind::UInt4, ElemKind::Int8});
         const Value x = sampling::constant(rng, b, {3, 8}, kind, 0, 7);
         return b.transposed(b.dequantizeLinear(x, someScale(rng, b, {3, 2}), someOffset(rng, b, kind, {3, 2}),
                                                {.axis = 1, .blockSize = 4, .to = ElemKind::Float32}),
                             {1, 0});
       }},
      {.name = "join-integers",
       .doc = "Quantized values of one scale are joined as integers.",
       .kinds = kindSet(ElemKind::Float32),
       .pattern = op(Op::Concat, {any(0)}),
       .condition = isJoined,
       .build = joinIntegers,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampleReal(rng, b, Shape{2, 3}), y = sampling::input(b, {2, 1}, x.node->input(0).kind());
         const DequantizeLinearNode d(*x.node);
         return b.concat({x, b.dequantizeLinear(y, d.scale(), d.offset(), {.axis = 0, .to = d.to()})}, {.axis = 1});
       }},
  };
}

std::vector<Rule> scaleRules() {
  return {
      {.name = "quantize-dequantized",
       .doc = "Quantization with the scales that a value had before gives its integers back.",
       .pattern = op(Op::QuantizeLinear, {any(0)}),
       .condition = givesBack,
       .build = [](const Match& m, Builder&) -> Values { return {m.node(0).input(0)}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampleReal(rng, b, Shape{2, 3});
         const DequantizeLinearNode d(*x.node);
         return b.quantizeLinear(x, d.scale(), d.offset(), {.axis = 0, .to = d.x().kind()});
       }},
      {.name = "quantize-relu",
       .doc = "Quantization that saturates at zero needs no relu before it. Relaxed: NaN.",
       .pattern = op(Op::QuantizeLinear, {op(Op::Relu, {any(0)}).once()}),
       .condition = saturatesAtZero,
       .build = [](const Match& m, Builder& b) -> Values {
         return {like(b, m.root(), {m[0], m.root().input(1), m.root().input(2)})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = b.relu(sampling::anyInput(rng, b));
         if (rng.flip()) return b.quantizeLinear(x, someScale(rng, b), {}, {.axis = 0, .to = ElemKind::UInt8});
         return b.quantizeLinear(x, someScale(rng, b), b.scalar(ElemKind::Int8, INT8_MIN),
                                 {.axis = 0, .to = ElemKind::Int8});
       },
       .keeps = Keeps::Finite},
      {.name = "rescale",
       .doc = "Factors and addends before a quantization take over the division by its scale.",
       .pattern = op(Op::QuantizeLinear, {any(0)}),
       .condition = isRescaled,
       .build = rescale,
       .sample = [](Rng& rng, Builder& b) -> Value {
         // Sums without halves: rounding them does not depend on the last digit.
         const Value x = b.mul(b.casted(sampling::input(b, {2, 3}, ElemKind::Int8), ElemKind::Float32),
                               b.scalar(ElemKind::Float32, 0.375));
         const Value y = b.add(x, b.scalar(ElemKind::Float32, 0.125));
         return b.quantizeLinear(rng.flip() ? b.relu(y) : y, b.scalar(ElemKind::Float32, 0.5),
                                 someOffset(rng, b, ElemKind::UInt8), {.axis = 0, .to = ElemKind::UInt8});
       },
       .keeps = Keeps::Rounding},
      {.name = "byte-table",
       .doc = "A function of one byte that costs more than a lookup is a table.",
       .pattern = op(Op::QuantizeLinear, {any(0)}),
       .condition =
           [](const Match& m) {
             const Value source = ByteFunction(m.result()).source();
             return source && source.shape() == m.result().shape();
           },
       .build = asTable,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampleReal(rng, b, Shape{2, 3});
         const auto rounded = [&](Value v) {
           const Value scale = b.scalar(ElemKind::Float32, 0.01);
           return b.quantizeLinear(v, scale, someOffset(rng, b, ElemKind::UInt8), {.axis = 0, .to = ElemKind::UInt8});
         };
         if (rng.flip()) return rounded(b.tanh(x));
         const Value gate = b.dequantizeLinear(rounded(b.sigmoid(x)), b.scalar(ElemKind::Float32, 0.01), {},
                                               {.axis = 0, .to = ElemKind::Float32});
         return rounded(b.mul(x, gate));
       }},
  };
}

}  // namespace

std::vector<Rule> quantRules() { return joined({integerRules(), moveRules(), scaleRules()}); }

}  // namespace aglow
