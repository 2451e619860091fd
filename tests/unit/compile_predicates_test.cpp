// Predicates that the compiler carries to what is computed in vain change no result, on any backend.
#include <gmock/gmock.h>

#include "compile/compile.h"
#include "evaluate.h"
#include "graph/builder.h"
#include "host_backends.h"
#include "inst/rows.h"

namespace aglow {
namespace {

constexpr int64_t kRows = 6, kColumns = 192;
const Shape kWhole{kRows, kColumns};

// Chains of products and functions that choices, of all or row by row, need only now and then.
class RandomChoices {
public:
  RandomChoices(Module& module, Rng& rng) : b_(*module.addFunction("main")), rng_(rng) {
    for (const char* name : {"x", "y"}) values_.push_back(b_.input(name, Type(ElemKind::Float32, kWhole)));
    flags_.push_back(b_.input("whole", Type(ElemKind::Bool, {})));
    flags_.push_back(b_.input("rows", Type(ElemKind::Bool, Shape{kRows, 1})));
    for (int i = 0; i < 2; ++i)
      weights_.push_back(
          b_.constant(testing_support::randomTensor(rng, Type(ElemKind::Float32, {kColumns, kColumns}))));
  }

  void grow(int choices) {
    for (int i = 0; i < choices; ++i) {
      const Value chosen = b_.where(rng_.pick(flags_), chain(), rng_.flip() ? chain() : rng_.pick(values_));
      values_.push_back(chosen);
      // Conditions may follow from what was chosen before.
      const Value most = b_.reduced(chosen, "max", rng_.flip() ? std::vector<int64_t>{1} : std::vector<int64_t>{0, 1});
      flags_.push_back(b_.less(most, b_.scalarLike(most, rng_.real(0, 1.5))));
    }
    b_.output("last", values_.back());
    b_.output("flag", flags_.back());
  }

private:
  Value chain() {
    Value v = rng_.pick(values_);
    const int64_t length = rng_.between(1, 5);
    for (int64_t i = 0; i < length; ++i) v = next(v);
    return v;
  }

  Value next(Value v) {
    switch (rng_.between(0, 7)) {
      case 0:
        return b_.tanh(v);
      case 1:
        return b_.mul(v, rng_.pick(values_));
      case 2:
        return b_.sub(v, b_.reduced(v, "max", {1}));
      case 3:
        return b_.reshaped(b_.abs(b_.reshaped(v, {kRows, 4, kColumns / 4})), kWhole.dims());
      case 4: {
        const auto half = [&](int64_t first) {
          return b_.slice(v, {.starts = {0, first}, .sizes = {kRows, kColumns / 2}});
        };
        return b_.concat({half(kColumns / 2), half(0)}, {.axis = 1});
      }
      default:
        return b_.tanh(b_.matMul(v, rng_.pick(weights_)));
    }
  }

  Builder b_;
  Rng& rng_;
  std::vector<Value> values_, flags_, weights_;
};

class CarriedPredicates : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Backends, CarriedPredicates, ::testing::ValuesIn(testing_support::hostBackends()));

TEST_P(CarriedPredicates, ChangeNoBit) {
  int64_t predicated = 0, byRow = 0, cut = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    std::vector<std::unique_ptr<Executable>> executables;
    for (const bool carries : {false, true}) {
      Rng rng(seed);
      auto module = std::make_unique<Module>();
      RandomChoices(*module, rng).grow(4);
      CompileOptions options;
      options.backend = GetParam();
      options.verifyEach = true;
      options.target.optLevel = 1;
      if (!carries) options.disabled = {"carry-predicates"};
      auto compilation = compileModule(std::move(module), options);
      ASSERT_TRUE(compilation.ok()) << compilation.diagnostics().errors().front().text();
      for (const Instr& instr : compilation->programs.front().instrs) {
        if (!carries) EXPECT_EQ(instr.predicate, kNoRegion);
        predicated += instr.predicate != kNoRegion ? 1 : 0;
        byRow += predicateRows(compilation->programs.front(), instr) > 0 ? 1 : 0;
        cut += instr.predicate != kNoRegion && instr.plan && instr.plan->cut ? 1 : 0;
      }
      auto executable = load(*std::move(compilation), {.threads = 2});
      ASSERT_TRUE(executable.ok()) << executable.error().text();
      executables.push_back(*std::move(executable));
    }
    Rng rng(seed + 100);
    for (int run = 0; run < 4; ++run) {
      std::vector<Tensor> inputs;
      for (const auto& binding : executables.front()->inputs())
        inputs.push_back(testing_support::randomTensor(rng, binding.type));
      const auto expected = executables[0]->run(inputs), got = executables[1]->run(inputs);
      ASSERT_TRUE(expected.ok() && got.ok());
      for (size_t i = 0; i < expected->size(); ++i)
        EXPECT_TRUE(testing_support::sameValues((*expected)[i], (*got)[i], true)) << "seed " << seed << " run " << run;
    }
  }
  EXPECT_GT(predicated, 20);
  EXPECT_GT(byRow, 5);
  if (GetParam() == "cpu") EXPECT_GT(cut, 3);
}

}  // namespace
}  // namespace aglow
