// Recurrent layers whole, as processors and as GPUs get them, against the reference, which unrolls them.
#include <set>
#include <span>

#include "on_device.h"

namespace aglow {

namespace {

using ::testing::Bool;

struct Sizes {
  int64_t steps, batch, width, hidden;
};

// A layer with random options, of which each is there half of the time.
class RandomLayer {
public:
  RandomLayer(uint64_t seed, Op op, const Sizes& n, ElemKind kind)
      : rng_(seed), b_(*module_.addFunction("f")), op_(op), n_(n), kind_(kind) {
    direction_ = rng_.pick<std::string>({"forward", "reverse", "bidirectional"});
    directions_ = direction_ == "bidirectional" ? 2 : 1;
    gates_ = op == Op::LSTM ? 4 : op == Op::GRU ? 3 : 1;
  }

  // The layer, all of whose results are outputs unless `one`.
  Node* make(bool one) {
    const int64_t columns = gates_ * n_.hidden;
    const Value x = scaled({n_.steps, n_.batch, n_.width}), w = scaled({directions_, columns, n_.width}),
                r = scaled({directions_, columns, n_.hidden}), bias = maybe({directions_, 2 * columns});
    const Value lengths = rng_.flip() ? lengthsOf() : Value{}, h = maybe({directions_, n_.batch, n_.hidden});
    const double clip = rng_.flip() ? 0.4 : 0;
    const std::string functions = activations();
    Node* node = nullptr;
    if (op_ == Op::RNN)
      node = b_.rnn(x, w, r, bias, lengths, h, {.direction = direction_, .activations = functions, .clip = clip});
    else if (op_ == Op::GRU)
      node =
          b_.gru(x, w, r, bias, lengths, h,
                 {.direction = direction_, .activations = functions, .clip = clip, .linearBeforeReset = rng_.flip()});
    else
      node = b_.lstm(x, w, r, bias, lengths, h, maybe({directions_, n_.batch, n_.hidden}),
                     maybe({directions_, 3 * n_.hidden}),
                     {.direction = direction_, .activations = functions, .clip = clip, .inputForget = rng_.flip()});
    for (int i = 0; i < (one ? 1 : node->resultCount()); ++i) b_.output(fmt::format("y{}", i), node->result(i));
    return node;
  }
  const Function& function() const { return b_.function(); }

private:
  Value scaled(Shape shape) {
    const Value x = b_.input(fmt::format("x{}", inputs_++), Type(kind_, std::move(shape)));
    return b_.mul(x, b_.scalar(kind_, 0.1));
  }
  Value maybe(Shape shape) { return rng_.flip() ? scaled(std::move(shape)) : Value{}; }
  Value lengthsOf() {
    std::vector<double> lengths;
    for (int64_t i = 0; i < n_.batch; ++i) lengths.push_back(static_cast<double>(rng_.between(0, n_.steps)));
    const Type type(rng_.flip() ? ElemKind::Int32 : ElemKind::Int64, Shape{n_.batch});
    return b_.constant(Tensor::fromDoubles(type, lengths));
  }
  std::string activations() {
    std::string all;
    if (rng_.flip()) return all;
    const int64_t each = op_ == Op::LSTM ? 3 : op_ == Op::GRU ? 2 : 1;
    for (int64_t i = 0; i < each * directions_; ++i)
      all += (i == 0 ? "" : ",") +
             rng_.pick<std::string>({"Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh",
                                     "HardSigmoid", "Elu", "Softsign", "Softplus"});
    return all;
  }

  Rng rng_;
  Module module_;
  Builder b_;
  Op op_;
  Sizes n_;
  ElemKind kind_;
  std::string direction_;
  int64_t directions_, gates_;
  int inputs_ = 0;
};

class RecurrentKernels : public OnBoth {
protected:
  static codegen::DeviceShape shapeOf(int64_t units) {
    codegen::DeviceShape shape = GetParam() ? kOfGroups : kOfItems;
    shape.computeUnits = units;
    return shape;
  }
  // Each operator in several sizes.
  void expectSameOf(std::span<const Sizes> sizes, uint64_t seed) const {
    for (const Op op : {Op::RNN, Op::GRU, Op::LSTM})
      for (const Sizes& n : sizes) {
        SCOPED_TRACE(++seed);
        RandomLayer layer(seed, op, n, seed % 4 == 0 ? ElemKind::BFloat16 : ElemKind::Float32);
        const Node* node = layer.make(seed % 3 == 0);
        ASSERT_TRUE(backend_->supports(*node)) << backend_->supports(*node).reason();
        expectSame(layer.function(), seed, false);
      }
  }
  struct Count {
    size_t kernels = 0, texts = 0;
  };
  Count kernelsOf(const Sizes& n) const {
    Module module;
    Builder b(*module.addFunction("f"));
    const auto input = [&](const char* name, Shape s) { return b.input(name, Type(ElemKind::Float32, std::move(s))); };
    b.output("y", b.gru(input("x", {n.steps, n.batch, n.width}), input("w", {1, 3 * n.hidden, n.width}),
                        input("r", {1, 3 * n.hidden, n.hidden}), {}, {}, {}, {})
                      ->result(0));
    Program program = *generate(b.function());
    EXPECT_TRUE(planInstructions(program, *backend_).ok());
    EXPECT_TRUE(runMemoryPasses(program).ok());
    Count count;
    std::set<std::string> found;
    for (const Instr& instr : program.instrs)
      if (instr.kind == Instr::Kind::Compute)
        for (const codegen::Launch& launch : codegen::launchesOf(program, instr, backend_->shape())) {
          found.insert(launch.text);
          ++count.kernels;
        }
    count.texts = found.size();
    return count;
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, RecurrentKernels, Bool(), OnBoth::nameOf);

TEST_P(RecurrentKernels, GoThroughAllSteps) {
  choose(shapeOf(1));
  EXPECT_EQ(kernelsOf({500, 2, 4, 16}).kernels, 3u);
  constexpr Sizes kSizes[] = {{1, 1, 1, 1}, {4, 9, 20, 33}, {3, 2, 5, 16}};
  expectSameOf(kSizes, 0);
}

// Narrow kinds round the states of every step, and some have no zero to begin with: those layers are lowered.
TEST_P(RecurrentKernels, LeaveKindsThatRoundMost) {
  choose(shapeOf(1));
  for (const ElemKind kind : {ElemKind::Float8E5M2, ElemKind::Float8E8M0, ElemKind::Float64}) {
    RandomLayer layer(1, Op::GRU, {3, 2, 4, 5}, kind);
    EXPECT_FALSE(backend_->supports(*layer.make(true))) << elemName(kind);
  }
}

// Large states, for which all units of the device work in each step. What a compiler is given does not grow with the
// sequence.
TEST_P(RecurrentKernels, AreOneForEachStepOfLargeStates) {
  choose(shapeOf(1000));
  const Count count = kernelsOf({500, 2, 4, 520});
  EXPECT_EQ(count.kernels, 2u + 1000u);
  EXPECT_EQ(count.texts, 4u);
  constexpr Sizes kSizes[] = {{3, 1, 5, 521}, {2, 3, 4, 520}};
  expectSameOf(kSizes, 100);
}

// Forms of more rows at once need more working memory. Those that 32 bits do not number are none, whoever chooses.
TEST(RecurrentForms, FitWorkingMemory) {
  class Chosen final : public codegen::Ways {
  public:
    explicit Chosen(size_t way) : way_(way) {}
    size_t choose(const std::string& /*question*/, std::span<const std::string> ways) const override {
      return std::min(way_, ways.size() - 1);
    }

  private:
    size_t way_;
  };
  for (const int64_t units : {1, 5}) {
    codegen::DeviceShape shape = kOfItems;
    shape.computeUnits = units;
    Module module;
    Builder b(*module.addFunction("f"));
    const auto input = [&](const char* name, Shape s) { return b.input(name, Type(ElemKind::Float32, std::move(s))); };
    b.output("y", b.rnn(input("x", {1, 3, 1}), input("w", {1, 32757, 1}), input("r", {1, 32757, 32757}), {}, {}, {}, {})
                      ->result(0));
    const Program program = *generate(b.function());
    const auto layer = std::ranges::find(program.instrs, Instr::Kind::Compute, &Instr::kind);
    ASSERT_NE(layer, program.instrs.end());
    EXPECT_TRUE(codegen::hasKernel(layer->attrs, OperandTypes(program, *layer), shape));
    for (size_t way = 0; way < 4; ++way) {
      const Chosen chosen(way);
      shape.ways = &chosen;
      EXPECT_LE(codegen::scratchBytes(program, *layer, shape), int64_t{4} << 30) << way << " of " << units << " units";
    }
  }
}

}  // namespace

}  // namespace aglow
