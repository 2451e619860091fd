// Recurrent layers against their definition, written as plain loops, and the size of what they unroll to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "evaluate.h"
#include "lower/lower.h"
#include "support/rng.h"

namespace aglow {

namespace {

using testing_support::countOf;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct LstmSizes {
  int64_t steps, batch, width, hidden;
};

// One direction of an LSTM with peepholes: x [s, b, w], w [4h, w], r [4h, h], bias [8h], p [3h]; gates i, o, f, c.
std::vector<double> lstmByDefinition(const LstmSizes& n, bool reverse, const std::vector<double>& x,
                                     const std::vector<double>& w, const std::vector<double>& r,
                                     const std::vector<double>& bias, const std::vector<double>& p,
                                     const std::vector<int64_t>& lengths) {
  std::vector<double> y(static_cast<size_t>(n.steps * n.batch * n.hidden), 0);
  const auto at = [](const std::vector<double>& v, int64_t i) { return v[static_cast<size_t>(i)]; };
  for (int64_t row = 0; row < n.batch; ++row) {
    std::vector<double> h(static_cast<size_t>(n.hidden), 0), c = h;
    for (int64_t i = 0; i < lengths[static_cast<size_t>(row)]; ++i) {
      const int64_t step = reverse ? lengths[static_cast<size_t>(row)] - 1 - i : i;
      std::vector<double> nextH = h, nextC = c;
      for (int64_t k = 0; k < n.hidden; ++k) {
        double gate[4];
        for (int64_t g = 0; g < 4; ++g) {
          const int64_t out = g * n.hidden + k;
          gate[g] = at(bias, out) + at(bias, 4 * n.hidden + out);
          for (int64_t j = 0; j < n.width; ++j)
            gate[g] += at(x, (step * n.batch + row) * n.width + j) * at(w, out * n.width + j);
          for (int64_t j = 0; j < n.hidden; ++j) gate[g] += at(h, j) * at(r, out * n.hidden + j);
        }
        const double in = sigmoid(gate[0] + at(p, k) * at(c, k));
        const double forget = sigmoid(gate[2] + at(p, 2 * n.hidden + k) * at(c, k));
        const double cell = forget * at(c, k) + in * std::tanh(gate[3]);
        nextC[static_cast<size_t>(k)] = cell;
        nextH[static_cast<size_t>(k)] = sigmoid(gate[1] + at(p, n.hidden + k) * cell) * std::tanh(cell);
      }
      h = nextH;
      c = nextC;
      for (int64_t k = 0; k < n.hidden; ++k) y[static_cast<size_t>((step * n.batch + row) * n.hidden + k)] = at(h, k);
    }
  }
  return y;
}

TEST(LowerLstm, FollowsItsDefinition) {
  Rng rng(7);
  for (const bool reverse : {false, true}) {
    const LstmSizes n{.steps = 4, .batch = 3, .width = 2, .hidden = 2};
    Module module;
    Function& f = *module.addFunction("f");
    Builder b(f);
    NamedTensors bindings;
    const auto input = [&](const char* name, const Shape& shape) {
      const Type type(ElemKind::Float32, shape);
      bindings[name] = testing_support::randomTensor(rng, type);
      return b.input(name, type);
    };
    const std::vector<int64_t> lengths{4, 1, 3};
    const Value x = input("x", {n.steps, n.batch, n.width}), w = input("w", {1, 4 * n.hidden, n.width}),
                r = input("r", {1, 4 * n.hidden, n.hidden}), bias = input("b", {1, 8 * n.hidden}),
                p = input("p", {1, 3 * n.hidden});
    const Value l = b.input("l", Type(ElemKind::Int64, Shape{n.batch}));
    bindings["l"] = Tensor::ints(lengths);
    Node* lstm = b.lstm(x, w, r, bias, l, {}, {}, p, {.direction = reverse ? "reverse" : "forward"});
    b.output("y", lstm->result(0));
    const auto results = evaluateFunction(f, bindings);
    ASSERT_TRUE(results.ok()) << results.error().text();
    const std::vector<double> expected =
        lstmByDefinition(n, reverse, bindings["x"].doubles(), bindings["w"].doubles(), bindings["r"].doubles(),
                         bindings["b"].doubles(), bindings["p"].doubles(), lengths);
    const std::vector<double> got = results->front().doubles();
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-4) << "element " << i;
  }
}

// An LSTM over `steps` steps, lowered.
size_t loweredSize(int64_t steps, bool lengths, Module& module) {
  Function& f = *module.addFunction("f");
  Builder b(f);
  const auto input = [&](const char* name, ElemKind kind, const Shape& shape) {
    return b.input(name, Type(kind, shape));
  };
  const ElemKind f32 = ElemKind::Float32;
  Node* lstm = b.lstm(input("x", f32, {steps, 2, 3}), input("w", f32, {1, 16, 3}), input("r", f32, {1, 16, 4}), {},
                      lengths ? input("l", ElemKind::Int64, {2}) : Value{}, {}, {}, {});
  b.output("y", lstm->result(0));
  const auto changed = lower(f);
  EXPECT_TRUE(changed.ok()) << changed.error().text();
  return f.size();
}

TEST(LowerLstm, TakesFewNodesAStepAndOneProductForAllInputs) {
  Module few, many;
  const size_t small = loweredSize(10, false, few), large = loweredSize(20, false, many);
  EXPECT_LE((large - small) / 10, 16u);
  EXPECT_EQ(countOf(*many.findFunction("f"), Op::MatMul), 21);
}

TEST(LowerLstm, SkipsRowsThatHaveEnded) {
  Module module;
  loweredSize(5, true, module);
  int products = 0;
  for (const auto& node : module.findFunction("f")->nodes()) {
    if (node->op() != Op::MatMul) continue;
    if (products++ == 0) continue;  // that of all inputs
    ASSERT_TRUE(node->predicate());
    EXPECT_EQ(node->predicate().type().text(), "bool[2]");
  }
  EXPECT_EQ(products, 6);
}

TEST(LowerLstm, RefusesTooManySteps) {
  Module module;
  Function& f = *module.addFunction("f");
  Builder b(f);
  const auto input = [&](const char* name, const Shape& shape) {
    return b.input(name, Type(ElemKind::Float32, shape));
  };
  b.output("y", b.rnn(input("x", {100000, 1, 1}), input("w", {1, 1, 1}), input("r", {1, 1, 1}), {}, {}, {})->result(0));
  const auto changed = lower(f);
  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.error().code, Code::LimitReached);
}

TEST(RecurrentRules, RefuseWhatDoesNotFit) {
  const auto refused = [](auto&& build, const std::string& text) {
    Module module;
    Builder b(*module.addFunction("f"));
    const auto result = building([&] {
      build(b, [&](const char* name, const Shape& shape) { return b.input(name, Type(ElemKind::Float32, shape)); });
      return 0;
    });
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Code::BadNode);
    EXPECT_THAT(result.error().message, ::testing::HasSubstr(text));
  };
  const auto gru = [](const GRUAttrs& attrs, int64_t rows) {
    return [=](Builder& b, auto in) {
      b.gru(in("x", {2, 1, 3}), in("w", {1, rows, 3}), in("r", {1, 6, 2}), {}, {}, {}, attrs);
    };
  };
  refused(gru({}, 5), "expected shape [1,6,3] of 'w'");
  refused(gru({.activations = "Tanh"}, 6), "expected 2 functions");
  refused(gru({.activations = "Tanh,Sinc"}, 6), "got 'Sinc'");
  refused(gru({.alpha = {1}}, 6), "'alpha' and 'beta'");
  refused(gru({.clip = -1}, 6), "'clip'");
  refused(gru({.direction = "bidirectional"}, 6), "expected shape [2,6,3] of 'w'");
}

}  // namespace

}  // namespace aglow
