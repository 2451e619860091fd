// Operators that make tensors out of arguments.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "import/caffe2/args.h"
#include "import/caffe2/convert.h"
#include "import/caffe2/op_tables.h"

namespace aglow::caffe2 {

namespace {

// From the argument, or from an operand: its shape, or its elements, followed by more extents.
std::vector<int64_t> fillShape(OpImport& c) {
  if (c.inputs() == 0) {
    if (flag(c, "input_as_shape")) fail(Code::BadNode, "expected an input, which 'input_as_shape' asks for");
    return shapeOf(intsArg(c, "shape")).dims();
  }
  std::vector<int64_t> dims = flag(c, "input_as_shape") ? c.constantInts(0) : c.in(0).shape().dims();
  for (const int64_t extent : intsArg(c, "extra_shape")) dims.push_back(extent);
  return shapeOf(std::move(dims)).dims();
}

// Without a type, that of the value counts.
ElemKind valueKind(const OpImport& c) {
  const Attribute* value = c.attr("value");
  const bool isInt = value != nullptr && value->type == AttributeType::Int;
  return kindArg(c, "dtype", isInt ? ElemKind::Int64 : ElemKind::Float32);
}

void constantFill(OpImport& c) {
  const Attribute* value = c.attr("value");
  const bool isInt = value != nullptr && value->type == AttributeType::Int;
  const ElemKind kind = valueKind(c);
  const std::vector<int64_t> dims = fillShape(c);
  if (isInt) {
    const Type type(kind, Shape{});
    return c.out(c.b.expand(c.b.constant(Tensor::of(type, std::vector<int64_t>{value->i})), {.shape = dims}));
  }
  c.out(c.b.splat({.value = realArg(c, "value", 0), .elem = kind, .shape = dims}));
}

void givenTensorFill(OpImport& c) {
  const std::optional<ElemKind> kind = givenKind(c.node);
  if (!kind) fail(Code::UnsupportedFeature, "elements of this type are not supported");
  const Attribute* values = c.attr("values");
  const Tensor tensor = orFail(givenValues(values == nullptr ? Attribute{} : *values, *kind));
  const Shape shape(fillShape(c));
  if (shape.elements() != tensor.type().elements())
    fail(Code::BadNode, fmt::format("expected {} values for a shape of {}, got {}", shape.elements(), shape.text(),
                                    tensor.type().elements()));
  c.out(c.b.constant(tensor.retyped(tensor.type().withShape(shape))));
}

// Numbers in [0, 1) that look random: the same for the same place, whatever the machine.
class Numbers {
public:
  explicit Numbers(const OpImport& c) {
    // Each value of a net draws its own.
    for (const char letter : c.node.outputs.empty() ? c.node.opType : c.node.outputs.front())
      state_ = mixed(state_ + static_cast<unsigned char>(letter) + 1);
  }

  double next() {
    state_ += 0x9E3779B97F4A7C15;
    return static_cast<double>(mixed(state_) >> 11) * 0x1p-53;
  }

private:
  static uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }

  uint64_t state_ = 0;
};

template <class F>
void drawn(OpImport& c, const std::vector<int64_t>& dims, ElemKind kind, F&& draw) {
  constexpr int64_t kMost = int64_t{1} << 28;
  const Shape shape(dims);
  if (shape.elements() > kMost)
    fail(Code::TooLarge, fmt::format("{} random numbers exceed the limit of {}", shape.elements(), kMost));
  Numbers numbers(c);
  Tensor tensor(Type(ElemKind::Float32, shape));
  auto* values = reinterpret_cast<float*>(tensor.mutableData());
  for (int64_t i = 0; i < shape.elements(); ++i) values[i] = static_cast<float>(draw(numbers));
  c.out(c.b.casted(c.b.constant(std::move(tensor)), kind));
}

double uniform(Numbers& numbers, double low, double high) { return low + (high - low) * numbers.next(); }

double normal(Numbers& numbers, double mean, double deviation) {
  const double radius = std::sqrt(-2 * std::log(1 - numbers.next()));
  return mean + deviation * radius * std::cos(2 * std::numbers::pi * numbers.next());
}

void uniformFill(OpImport& c) {
  const double low = c.inputs() == 3 ? c.constantReal(1) : realArg(c, "min", 0);
  const double high = c.inputs() == 3 ? c.constantReal(2) : realArg(c, "max", 1);
  drawn(c, fillShape(c), ElemKind::Float32, [&](Numbers& n) { return uniform(n, low, high); });
}

void uniformIntFill(OpImport& c) {
  const double low = realArg(c, "min", 0), high = realArg(c, "max", 1);
  drawn(c, fillShape(c), ElemKind::Int32, [&](Numbers& n) { return std::floor(uniform(n, low, high + 1)); });
}

void gaussianFill(OpImport& c) {
  const double mean = realArg(c, "mean", 0), deviation = realArg(c, "std", 1);
  drawn(c, fillShape(c), ElemKind::Float32, [&](Numbers& n) { return normal(n, mean, deviation); });
}

// Elements under one index of an axis.
double fan(const std::vector<int64_t>& dims, size_t axis) {
  const Shape shape(dims);
  if (dims.size() <= axis || shape.elements() == 0)
    fail(Code::BadNode, fmt::format("expected a shape with an axis {}, got {}", axis, shape.text()));
  return static_cast<double>(shape.elements()) / static_cast<double>(dims[axis]);
}

void xavierFill(OpImport& c) {
  const std::vector<int64_t> dims = fillShape(c);
  const double scale = std::sqrt(3 / fan(dims, 0));
  drawn(c, dims, ElemKind::Float32, [&](Numbers& n) { return uniform(n, -scale, scale); });
}

void msraFill(OpImport& c) {
  const std::vector<int64_t> dims = fillShape(c);
  const double scale = std::sqrt(2 / fan(dims, 1));
  drawn(c, dims, ElemKind::Float32, [&](Numbers& n) { return normal(n, 0, scale); });
}

void rangeFill(OpImport& c) {
  const std::vector<int64_t> dims = fillShape(c);
  c.out(c.b.reshaped(iota(c.b, Shape(dims).elements(), 0, 1, ElemKind::Float32), dims));
}

// From a start, up to but without a stop, in steps.
void rangeOp(OpImport& c) {
  const int stopAt = c.inputs() > 1 ? 1 : 0;
  const ElemKind kind = c.in(stopAt).kind();
  const double start = c.inputs() > 1 ? c.constantReal(0) : 0, stop = c.constantReal(stopAt);
  const double step = c.inputs() > 2 ? c.constantReal(2) : 1;
  constexpr double kMost = 1 << 27;
  const double count = std::ceil((stop - start) / step);
  if (step == 0 || !(count <= kMost))
    fail(Code::BadNode, fmt::format("a range from {} to {} in steps of {} is too long", start, stop, step));
  std::vector<double> values;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) values.push_back(start + static_cast<double>(i) * step);
  const auto size = static_cast<int64_t>(values.size());
  c.out(c.b.casted(c.b.constant(Tensor::of(Type(ElemKind::Float64, Shape{size}), values)), kind));
}

void diagonalFill(OpImport& c) {
  const std::vector<int64_t> dims = fillShape(c);
  if (dims.size() < 2) fail(Code::BadNode, "expected at least two axes");
  Value on;
  for (size_t axis = 1; axis < dims.size(); ++axis) {
    const auto rank = static_cast<int64_t>(dims.size());
    const Value same = c.b.equal(iota(c.b, dims[0], 0, rank), iota(c.b, dims[axis], static_cast<int64_t>(axis), rank));
    on = on ? c.b.logicalAnd(on, same) : same;
  }
  const ElemKind kind = valueKind(c);
  c.out(c.b.where(on, c.b.scalar(kind, realArg(c, "value", 0)), c.b.scalar(kind, 0)));
}

}  // namespace

std::span<const OpRow> fillRows() {
  static constexpr OpRow rows[] = {
      row("ConstantFill", constantFill),
      row("GivenTensorFill", givenTensorFill),
      row("GivenTensorDoubleFill", givenTensorFill),
      row("GivenTensorFp16Fill", givenTensorFill),
      row("GivenTensorIntFill", givenTensorFill),
      row("GivenTensorInt64Fill", givenTensorFill),
      row("GivenTensorInt16Fill", givenTensorFill),
      row("GivenTensorBoolFill", givenTensorFill),
      row("GivenTensorByteStringToUInt8Fill", givenTensorFill),
      row("UniformFill", uniformFill),
      row("UniformIntFill", uniformIntFill),
      row("GaussianFill", gaussianFill),
      row("XavierFill", xavierFill),
      row("MSRAFill", msraFill),
      row("RangeFill", rangeFill),
      row("Range", rangeOp),
      row("DiagonalFill", diagonalFill),
  };
  return rows;
}

}  // namespace aglow::caffe2
