// Operators that draw random numbers. The numbers are constants of the program, drawn from the node's seed when the
// model is imported: a program gives the same result every time, and so do two imports of a model. Only what Dropout
// drops in training without a seed is drawn anew in every run, the same in each first, second and so on.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "graph/philox.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

// A number scrambled so that neighbours have nothing in common (the finalizer of splitmix64).
uint64_t scrambled(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// Another for each node.
uint64_t ownSeed(const OpImport& c) {
  uint64_t seed = c.functionSize();
  for (const std::string& name : c.node.outputs)
    for (const char letter : name) seed = scrambled(seed ^ static_cast<unsigned char>(letter));
  return scrambled(~seed);
}

// The same for the same seed; without one, another for each node.
uint64_t seedOf(const OpImport& c) {
  if (!c.hasAttr("seed")) return ownSeed(c);
  const auto seed = static_cast<float>(c.real("seed"));
  uint32_t bits = 0;
  std::memcpy(&bits, &seed, sizeof bits);
  return scrambled(bits);
}

// As many numbers as a shape has elements, each made of its position.
std::vector<double> numbersFor(const Shape& shape, const std::function<double(uint64_t)>& next) {
  constexpr int64_t kMost = int64_t{1} << 27;
  if (shape.elements() > kMost)
    fail(Code::TooLarge, fmt::format("{} random numbers exceed the limit of {}", shape.elements(), kMost));
  std::vector<double> values;
  values.reserve(static_cast<size_t>(shape.elements()));
  for (int64_t i = 0; i < shape.elements(); ++i) values.push_back(next(static_cast<uint64_t>(i)));
  return values;
}

// Numbers from 0 up to, but without, 1.
std::vector<double> uniform(uint64_t seed, const Shape& shape) {
  return numbersFor(shape, [&](uint64_t i) { return std::ldexp(static_cast<double>(scrambled(seed + i) >> 11), -53); });
}

// The same from the Mersenne Twister, two of its numbers for each, as numpy has them: the standard defines what Dropout
// drops by a program for numpy.
std::vector<double> twisted(uint32_t seed, const Shape& shape) {
  std::mt19937 twister(seed);
  return numbersFor(shape, [&](uint64_t) {
    const uint32_t high = static_cast<uint32_t>(twister()) >> 5, low = static_cast<uint32_t>(twister()) >> 6;
    return std::ldexp(std::ldexp(high, 26) + low, -53);
  });
}

// Two uniform numbers for each (Box and Muller).
std::vector<double> normal(uint64_t seed, const Shape& shape) {
  constexpr double kTwoPi = 6.283185307179586476925;
  std::vector<double> values = uniform(seed, shape);
  const std::vector<double> angles = uniform(scrambled(seed), shape);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::sqrt(-2 * std::log1p(-values[i])) * std::cos(kTwoPi * angles[i]);
  return values;
}

Value drawn(OpImport& c, ElemKind kind, const Shape& shape, bool bell) {
  if (!isFloat(kind)) fail(Code::BadNode, fmt::format("expected 'dtype' to be a float type, got {}", elemName(kind)));
  std::vector<double> values = bell ? normal(seedOf(c), shape) : uniform(seedOf(c), shape);
  const double offset = bell ? c.real("mean", 0) : c.real("low", 0);
  const double factor = bell ? c.real("scale", 1) : c.real("high", 1) - offset;
  for (double& value : values) value = offset + factor * value;
  return c.b.constant(Tensor::of(Type(kind, shape), values));
}

template <bool kBell>
void random(OpImport& c) {
  c.out(drawn(c, c.elem("dtype", ElemKind::Float32), shapeOf(c.ints("shape")), kBell));
}

template <bool kBell>
void randomLike(OpImport& c) {
  c.out(drawn(c, c.elem("dtype", c.in(0).kind()), c.in(0).shape(), kBell));
}

void bernoulli(OpImport& c) {
  const Value x = c.in(0);
  const Value draw = c.b.constant(Tensor::of(Type(x.kind(), x.shape()), uniform(seedOf(c), x.shape())));
  c.out(c.b.casted(c.b.less(draw, x), c.elem("dtype", x.kind())));
}

// Whether elements are to be dropped. Before opset 7 a node without 'is_test' means training by the letter, but in
// files made to be run it means nothing.
bool isTraining(OpImport& c) {
  if (c.version < 7) return c.integer("is_test", 1) == 0;
  return c.version >= 12 && c.has(2) && c.constantInt(2) != 0;
}

// With a seed the same elements in every run, as the standard has it.
Value keptBySeed(OpImport& c, Value x, double ratio) {
  std::vector<double> kept = twisted(static_cast<uint32_t>(c.integer("seed")), x.shape());
  for (double& value : kept) value = value >= ratio ? 1 : 0;
  return c.b.constant(Tensor::of(Type(x.kind(), x.shape()), kept));
}

// Without one, others in each: runs are counted in state.
Value keptByRun(OpImport& c, Value x, double ratio) {
  Builder& b = c.b;
  Placeholder* runs = b.state(b.name() + ".runs", Tensor::fromInts(Type(ElemKind::UInt64, Shape{}), {0}));
  const Value numbers = uniformNumbers(b, x.shape(), ownSeed(c), runs->result());
  const Value one = b.constant(Tensor::fromInts(Type(ElemKind::UInt64, Shape{}), {1}));
  b.save(b.add(runs->result(), one), runs);
  return b.casted(b.logicalNot(b.less(numbers, b.scalarLike(numbers, ratio))), x.kind());
}

// The input itself, with a mask that keeps everything; in training what is kept of it, the larger for what is not.
void dropout(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  const double ratio = !isTraining(c) ? 0 : c.has(1) ? c.constantReal(1) : c.real("ratio", 0.5);
  const ElemKind maskKind = c.version < 10 ? x.kind() : ElemKind::Bool;
  if (!(ratio >= 0 && ratio < 1))
    fail(Code::BadNode, fmt::format("expected a ratio from 0 to less than 1, got {}", ratio));
  if (ratio == 0) {
    c.out(0, x);
    if (c.wants(1)) c.out(1, b.splat({.value = 1, .elem = maskKind, .shape = x.shape().dims()}));
    return;
  }
  const Value mask = c.hasAttr("seed") ? keptBySeed(c, x, ratio) : keptByRun(c, x, ratio);
  c.out(0, b.mul(b.mul(x, mask), b.scalarLike(x, 1 / (1 - ratio))));
  if (c.wants(1)) c.out(1, b.casted(mask, maskKind));
}

// The largest of logarithms of probabilities, each with noise that makes it win as often as its probability says.
void multinomial(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  const int64_t samples = c.integer("sample_size", 1);
  if (x.rank() != 2 || x.dim(1) < 1 || samples < 1 || samples > (int64_t{1} << 27))
    fail(Code::BadNode, fmt::format("expected [batch, classes] and a positive 'sample_size', got {} and {}",
                                    x.type().text(), samples));
  const Shape shape = shapeOf({x.dim(0), samples, x.dim(1)});
  std::vector<double> noise = uniform(seedOf(c), shape);
  for (double& value : noise) value = -std::log(-std::log1p(-value));
  const Value wide = widened(b, unsqueezed(b, x, 1));
  const Value scores = b.add(wide, b.constant(Tensor::of(Type(wide.kind(), shape), noise)));
  const Value best = b.argReduce(scores, {.kind = "max", .axis = 2, .keepdims = false});
  c.out(b.casted(best, c.elem("dtype", ElemKind::Int32)));
}

}  // namespace

std::span<const OpRow> randomRows() {
  static constexpr OpRow rows[] = {
      {"RandomNormal", random<true>},
      {"RandomUniform", random<false>},
      {"RandomNormalLike", randomLike<true>},
      {"RandomUniformLike", randomLike<false>},
      {"Bernoulli", bernoulli},
      {"Dropout", dropout},
      {"Multinomial", multinomial},
  };
  return rows;
}

}  // namespace aglow::onnx
