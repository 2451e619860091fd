// Composites that the CPU backend keeps whole, against their lowered form in the interpreter: random sizes and
// attributes, vectors of all widths, one thread and two.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/cpu.h"
#include "backends/plan.h"
#include "compile/evaluate.h"
#include "graph/builder.h"
#include "inst/irgen.h"
#include "memory/pass_table.h"
#include "support/rng.h"

namespace aglow {

namespace {

struct Config {
  const char* name;
  codegen::TargetOptions target;
  bool threads = false;
};

std::vector<Config> configs() {
  return {{.name = "native", .target = {}, .threads = true},
          {.name = "avx2", .target = {.cpu = "x86-64-v3", .optLevel = 1}},
          {.name = "sse2", .target = {.cpu = "x86-64", .optLevel = 0}}};
}

// A function of composites with bound inputs, all of whose results are outputs.
class Subject {
public:
  explicit Subject(uint64_t seed) : rng(seed), b(*module_.addFunction("f")) {}

  // Numbers up to `size`; with specials, few are infinite or NaN.
  Value input(Shape shape, double size = 1, bool specials = false) {
    const Type type(ElemKind::Float32, std::move(shape));
    std::vector<double> values(static_cast<size_t>(type.elements()));
    constexpr double kInf = std::numeric_limits<double>::infinity();
    for (double& value : values) {
      value = rng.real(-size, size);
      if (specials && rng.between(0, 99) == 0) value = rng.pick<double>({kInf, -kInf, std::nan(""), 1e30});
    }
    return input(Tensor::fromDoubles(type, values));
  }
  Value optional(Shape shape) { return rng.flip() ? input(std::move(shape)) : Value{}; }
  Value input(const Tensor& value) {
    const std::string name = "in" + std::to_string(bindings_.size());
    bindings_[name] = value;
    return b.input(name, value.type());
  }
  // The first result is read, and so are some of the others.
  void output(Node* node) {
    outputFirst(node);
    for (int i = 1; i < node->resultCount(); ++i)
      if (rng.flip()) b.output("out" + std::to_string(outputs_++), node->result(i));
  }
  void outputFirst(Node* node) {
    nodes_.push_back(node);
    b.output("out" + std::to_string(outputs_++), node->result(0));
  }

  void check() {
    const auto expected = evaluateFunction(b.function(), bindings_);
    ASSERT_TRUE(expected.ok()) << expected.error().text();
    for (const Config& config : configs()) {
      SCOPED_TRACE(config.name);
      std::vector<Tensor> alone, shared;
      run(config, 1, alone);
      ASSERT_EQ(alone.size(), expected->size());
      for (size_t i = 0; i < alone.size(); ++i) compare((*expected)[i], alone[i]);
      if (!config.threads) continue;
      run(config, 2, shared);
      ASSERT_EQ(shared.size(), expected->size());
      for (size_t i = 0; i < alone.size(); ++i)
        EXPECT_EQ(std::memcmp(alone[i].data(), shared[i].data(), static_cast<size_t>(alone[i].bytes())), 0)
            << "two threads give other bits";
    }
  }

  Rng rng;

private:
  void run(const Config& config, int threads, std::vector<Tensor>& results) {
    const auto backend = CpuBackend::create(config.target);
    ASSERT_TRUE(backend.ok()) << backend.error().text();
    for (const Node* node : nodes_) {
      const Decision kept = (*backend)->supports(*node);
      ASSERT_TRUE(static_cast<bool>(kept)) << kept.reason();
    }
    auto program = generate(b.function());
    ASSERT_TRUE(program.ok()) << program.error().text();
    const Status planned = planInstructions(*program, **backend);
    ASSERT_TRUE(planned.ok()) << planned.error().text();
    const Status placed = runMemoryPasses(*program);
    ASSERT_TRUE(placed.ok()) << placed.error().text();
    auto executable = (*backend)->compile(*std::move(program), {.threads = threads});
    ASSERT_TRUE(executable.ok()) << executable.error().text();
    auto bound = bindByName((*executable)->inputs(), {bindings_.begin(), bindings_.end()});
    ASSERT_TRUE(bound.ok()) << bound.error().text();
    auto got = (*executable)->run(*bound);
    ASSERT_TRUE(got.ok()) << got.error().text();
    results = *std::move(got);
  }

  static void compare(const Tensor& want, const Tensor& got) {
    ASSERT_EQ(want.type(), got.type());
    const std::vector<double> x = want.doubles(), y = got.doubles();
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i]) ? std::isnan(y[i])
                           : x[i] == y[i] || std::abs(x[i] - y[i]) <= 2e-5 * std::max(1., std::abs(x[i])))
        continue;
      FAIL() << "element " << i << " of " << want.type().text() << " is " << y[i] << " instead of " << x[i];
    }
  }

  Module module_;
  NamedTensors bindings_;
  std::vector<const Node*> nodes_;
  int outputs_ = 0;

public:
  Builder b;
};

struct Layer {
  std::string direction, activations;
  int64_t steps, batch, width, hidden, directions;
  Value x, w, r, bias, lengths, h;
  double clip = 0;
};

// The operands that all recurrent layers share. `functions` of a direction are drawn from all of them now and then. A
// large one is worth two threads.
Layer randomLayer(Subject& s, int64_t gates, int functions, bool large) {
  Rng& rng = s.rng;
  Layer n;
  n.direction = rng.pick<std::string>({"forward", "reverse", "bidirectional"});
  n.directions = n.direction == "bidirectional" ? 2 : 1;
  n.steps = rng.between(1, 5);
  n.batch = rng.between(1, 8);
  n.width = rng.between(1, 40);
  n.hidden = large ? 208 : rng.between(1, 40);
  if (rng.flip()) n.clip = 0.5;
  if (rng.flip()) {
    for (int i = 0; i < functions * static_cast<int>(n.directions); ++i)
      n.activations += (i == 0 ? "" : ",") +
                       rng.pick<std::string>({"Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu",
                                              "ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus"});
  }
  n.x = s.input({n.steps, n.batch, n.width});
  n.w = s.input({n.directions, gates * n.hidden, n.width}, 0.2);
  n.r = s.input({n.directions, gates * n.hidden, n.hidden}, 0.2);
  n.bias = s.optional({n.directions, 2 * gates * n.hidden});
  if (rng.flip()) {
    std::vector<double> lengths(static_cast<size_t>(n.batch));
    for (double& length : lengths) length = static_cast<double>(rng.between(0, n.steps));
    const Type type(rng.flip() ? ElemKind::Int32 : ElemKind::Int64, Shape{n.batch});
    n.lengths = s.input(Tensor::fromDoubles(type, lengths));
  }
  n.h = s.optional({n.directions, n.batch, n.hidden});
  return n;
}

constexpr int kUses = 2;

TEST(CpuWhole, Lstm) {
  Subject s(1);
  for (int i = 0; i < kUses; ++i) {
    const Layer n = randomLayer(s, 4, 3, i == 0);
    const Value c = s.optional({n.directions, n.batch, n.hidden}), p = s.optional({n.directions, 3 * n.hidden});
    s.output(s.b.lstm(
        n.x, n.w, n.r, n.bias, n.lengths, n.h, c, p,
        {.direction = n.direction, .activations = n.activations, .clip = n.clip, .inputForget = s.rng.flip()}));
  }
  s.check();
}

TEST(CpuWhole, Gru) {
  Subject s(2);
  for (int i = 0; i < kUses; ++i) {
    const Layer n = randomLayer(s, 3, 2, i == 0);
    s.output(s.b.gru(
        n.x, n.w, n.r, n.bias, n.lengths, n.h,
        {.direction = n.direction, .activations = n.activations, .clip = n.clip, .linearBeforeReset = s.rng.flip()}));
  }
  s.check();
}

TEST(CpuWhole, Rnn) {
  Subject s(3);
  for (int i = 0; i < kUses; ++i) {
    const Layer n = randomLayer(s, 1, 1, i == 0);
    s.output(s.b.rnn(n.x, n.w, n.r, n.bias, n.lengths, n.h,
                     {.direction = n.direction, .activations = n.activations, .clip = n.clip}));
  }
  s.check();
}

// A mask that broadcasts, of truth values or with minus infinity for some keys.
Value randomMask(Subject& s, const Shape& scores) {
  std::vector<int64_t> dims(scores.dims().begin(), scores.dims().end());
  dims.erase(dims.begin(), dims.begin() + s.rng.between(0, 3));
  for (int64_t& dim : dims)
    if (s.rng.between(0, 3) == 0) dim = 1;
  const Type type(s.rng.flip() ? ElemKind::Bool : ElemKind::Float32, Shape(dims));
  std::vector<double> values(static_cast<size_t>(type.elements()));
  for (double& value : values) {
    const bool shown = s.rng.flip();
    value = type.kind() == ElemKind::Bool ? shown
            : shown                       ? s.rng.real(-1, 1)
                                          : -std::numeric_limits<double>::infinity();
  }
  return s.input(Tensor::fromDoubles(type, values));
}

// With specials, some scores are infinite or NaN.
void addAttention(Subject& s, bool large, bool specials) {
  Rng& rng = s.rng;
  const int64_t batch = rng.between(1, 2), groups = rng.between(1, 3), heads = groups * rng.between(1, 2);
  const int64_t queries = large ? 100 : rng.between(1, 20), keys = large ? 600 : rng.between(1, 70);
  const int64_t width = rng.between(1, 40), valueWidth = rng.between(1, 70);
  const Value q = s.input({batch, heads, queries, width}, 2, specials), k = s.input({batch, groups, keys, width}, 2),
              v = s.input({batch, groups, keys, valueWidth});
  const Value mask = rng.flip() ? randomMask(s, {batch, heads, queries, keys}) : Value{};
  s.outputFirst(s.b.attention(q, k, v, mask,
                              {.scale = rng.real(0.2, 1),
                               .left = rng.flip() ? rng.between(0, 9) : -1,
                               .right = rng.flip() ? rng.between(0, 9) : -1,
                               .offset = rng.between(-12, 12),
                               .precision = ElemKind::Float32}));
}

TEST(CpuWhole, Attention) {
  Subject s(4);
  for (int i = 0; i < 5; ++i) addAttention(s, i < 2, i > 2);
  s.check();
}

// Scores stay away from each other, so that few weights lie between two steps.
void addByteAttention(Subject& s, bool large) {
  Rng& rng = s.rng;
  const int64_t batch = rng.between(1, 2), groups = rng.between(1, 3), heads = groups * rng.between(1, 2);
  const int64_t queries = large ? 100 : rng.between(1, 20), keys = large ? 600 : rng.between(1, 70);
  const int64_t width = rng.between(1, 40), valueWidth = rng.between(1, 70);
  const auto bytes = [&](const Shape& shape) {
    const ElemKind kind = rng.flip() ? ElemKind::UInt8 : ElemKind::Int8;
    std::vector<int64_t> values(static_cast<size_t>(shape.elements()));
    for (int64_t& value : values) value = rng.between(0, 255) - (kind == ElemKind::Int8 ? 128 : 0);
    return s.input(Tensor::fromInts(Type(kind, shape), values));
  };
  const Value q = bytes({batch, heads, queries, width}), k = bytes({batch, groups, keys, width}),
              v = bytes({batch, groups, keys, valueWidth});
  const auto offset = [&](Value x) { return rng.between(0, 255) - (x.kind() == ElemKind::Int8 ? 128 : 0); };
  const Value mask = rng.flip() ? randomMask(s, {batch, heads, queries, keys}) : Value{};
  s.outputFirst(s.b.byteAttention(q, k, v, mask,
                                  {.scale = rng.real(1, 4) / static_cast<double>(1 << 16),
                                   .vScale = 1. / (1 << 14),
                                   .qOffset = offset(q),
                                   .kOffset = offset(k),
                                   .vOffset = offset(v),
                                   .left = rng.flip() ? rng.between(0, 9) : -1,
                                   .right = rng.flip() ? rng.between(0, 9) : -1,
                                   .offset = rng.between(-12, 12)})
                    .node);
}

TEST(CpuWhole, ByteAttention) {
  Subject s(5);
  for (int i = 0; i < 6; ++i) addByteAttention(s, i < 2);
  s.check();
}

TEST(CpuWhole, SaysWhyNot) {
  Module module;
  Builder b(*module.addFunction("f"));
  const auto f64 = [](Shape shape) { return Type(ElemKind::Float64, std::move(shape)); };
  Node* rnn =
      b.rnn(b.input("x", f64({2, 1, 3})), b.input("w", f64({1, 4, 3})), b.input("r", f64({1, 4, 4})), {}, {}, {}, {});
  const Value softmax = b.softmax(b.input("s", f64({2, 2})));
  const auto backend = CpuBackend::create({});
  ASSERT_TRUE(backend.ok());
  EXPECT_EQ((*backend)->supports(*rnn).reason(), "needs f32, has f64");
  EXPECT_EQ((*backend)->supports(*softmax.node).reason(), "no kernel computes it whole");
}

}  // namespace

}  // namespace aglow
