// Operators that draw random numbers, all of them from one generator of counters (graph/philox.h). With a seed the
// numbers are constants of the program, the same in every run; without one they are drawn anew in each, the same in
// each first, second and so on: runs are counted in state.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
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

void checkCount(const Shape& shape) {
  constexpr int64_t kMost = int64_t{1} << 27;
  if (shape.elements() > kMost)
    fail(Code::TooLarge, fmt::format("{} random numbers exceed the limit of {}", shape.elements(), kMost));
}

// The numbers of one node: multiples of 2^-24 from 0 up to, but without, 1, as f32. Streams have nothing in common.
class Numbers {
public:
  explicit Numbers(OpImport& c) : b_(c.b), seed_(seedOf(c)) {
    if (c.hasAttr("seed")) return;
    Placeholder* runs = b_.state(b_.name() + ".runs", Tensor::fromInts(Type(ElemKind::UInt64, Shape{}), {0}));
    run_ = runs->result();
    const Value one = b_.constant(Tensor::fromInts(Type(ElemKind::UInt64, Shape{}), {1}));
    b_.save(b_.add(run_, one), runs);
  }

  Value of(const Shape& shape, uint64_t stream = 0) {
    const uint64_t seed = stream == 0 ? seed_ : scrambled(seed_ + stream);
    checkCount(shape);
    if (run_) return uniformNumbers(b_, shape, seed, run_);
    return b_.constant(Tensor::of(Type(ElemKind::Float32, shape), uniformNumbers(shape.elements(), seed, 0)));
  }
  // With all the digits of f64 that two of them have.
  Value wideOf(const Shape& shape, uint64_t stream = 0) {
    const Value high = b_.casted(of(shape, 2 * stream), ElemKind::Float64);
    const Value low = b_.casted(of(shape, 2 * stream + 1), ElemKind::Float64);
    return b_.add(high, b_.mul(low, b_.scalarLike(low, std::ldexp(1, -24))));
  }

private:
  Builder& b_;
  uint64_t seed_;
  Value run_;  // empty: the same in every run
};

// Two uniform numbers for each (Box and Muller).
Value normal(Builder& b, Numbers& numbers, const Shape& shape) {
  constexpr double kTwoPi = 6.283185307179586476925;
  const Value u = numbers.wideOf(shape), v = numbers.wideOf(shape, 1);
  const Value radius = b.sqrt(b.mul(b.scalarLike(u, -2), b.log1p(b.neg(u))));
  return b.mul(radius, b.cos(b.mul(b.scalarLike(v, kTwoPi), v)));
}

// In f64 and rounded once, so that backends agree on what they round.
Value drawn(OpImport& c, ElemKind kind, const Shape& shape, bool bell) {
  if (!isFloat(kind)) fail(Code::BadNode, fmt::format("expected 'dtype' to be a float type, got {}", elemName(kind)));
  Builder& b = c.b;
  Numbers numbers(c);
  const Value values = bell ? normal(b, numbers, shape) : numbers.wideOf(shape);
  const double offset = bell ? c.real("mean", 0) : c.real("low", 0);
  const double factor = bell ? c.real("scale", 1) : c.real("high", 1) - offset;
  const Value scaled = b.mul(values, b.scalarLike(values, factor));
  return b.casted(b.add(scaled, b.scalarLike(scaled, offset)), kind);
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
  const Value draw = Numbers(c).of(x.shape());
  const Value chance = c.b.casted(x, x.kind() == ElemKind::Float64 ? ElemKind::Float64 : ElemKind::Float32);
  c.out(c.b.casted(c.b.less(c.b.casted(draw, chance.kind()), chance), c.elem("dtype", x.kind())));
}

// Whether elements are to be dropped. Before opset 7 a node without 'is_test' means training by the letter, but in
// files made to be run it means nothing.
bool isTraining(OpImport& c) {
  if (c.version < 7) return c.integer("is_test", 1) == 0;
  return c.version >= 12 && c.has(2) && c.constantInt(2) != 0;
}

// Those of the Mersenne Twister, two of its numbers for each, as numpy has them: the standard defines what Dropout
// drops with a seed by a program for numpy.
Value keptBySeed(OpImport& c, Value x, double ratio) {
  checkCount(x.shape());
  std::mt19937 twister(static_cast<uint32_t>(c.integer("seed")));
  std::vector<double> kept;
  for (int64_t i = 0; i < x.shape().elements(); ++i) {
    const uint32_t high = static_cast<uint32_t>(twister()) >> 5, low = static_cast<uint32_t>(twister()) >> 6;
    kept.push_back(std::ldexp(std::ldexp(high, 26) + low, -53) >= ratio ? 1 : 0);
  }
  return c.b.constant(Tensor::of(Type(x.kind(), x.shape()), kept));
}

Value keptByRun(OpImport& c, Value x, double ratio) {
  const Value numbers = Numbers(c).of(x.shape());
  return c.b.casted(c.b.logicalNot(c.b.less(numbers, c.b.scalarLike(numbers, ratio))), x.kind());
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
  // Between the multiples, so that no logarithm is infinite.
  const Value draw = b.casted(Numbers(c).of(shape), ElemKind::Float64);
  const Value inner = b.add(draw, b.scalarLike(draw, std::ldexp(1, -25)));
  const Value noise = b.neg(b.log(b.neg(b.log1p(b.neg(inner)))));
  const Value scores = b.add(b.casted(unsqueezed(b, x, 1), ElemKind::Float64), noise);
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
