// Random programs give the same bits with and without stacking, after every memory pass.
#include <gtest/gtest.h>

#include "backends/interpreter/interpreter.h"
#include "evaluate.h"
#include "graph/builder.h"
#include "inst/fused.h"
#include "inst/irgen.h"
#include "inst/text.h"
#include "inst/verifier.h"
#include "memory/place.h"
#include "memory/plan.h"
#include "random_graph.h"
#include "stack/stack.h"

namespace aglow {
namespace {

std::vector<Tensor> run(const Program& program, const std::vector<Tensor>& inputs) {
  InterpreterOptions options;
  options.poison = true;
  auto executable = InterpreterExecutable::create(program, options);
  EXPECT_TRUE(executable.ok()) << executable.error().text();
  auto results = executable->run(inputs);
  return results.ok() ? *std::move(results) : std::vector<Tensor>();
}

struct Counts {
  size_t fused = 0, anchored = 0, reducing = 0, inPlace = 0;
};

// Compares after stacking and after each memory pass; false when there is nothing to compare.
bool compare(const Function& function, const std::string& what, Rng& rng, Counts& counts) {
  auto program = generate(function);
  EXPECT_TRUE(program.ok()) << program.error().text();
  std::vector<Tensor> inputs;
  for (const RegionId id : program->inputs()) {
    const Type& type = (*program)[id].type;
    // A false predicate would let results be anything.
    const bool predicate = type == Type(ElemKind::Bool, Shape{});
    inputs.push_back(predicate ? Tensor::fromDoubles(type, std::vector<double>{1})
                               : testing_support::randomTensor(rng, type));
  }
  Program plain = *program;
  EXPECT_TRUE(placeArena(plain).ok());
  const std::vector<Tensor> expected = run(plain, inputs);
  if (expected.empty()) return false;

  EXPECT_TRUE(stackInstructions(*program, stackEverything()).ok());
  const auto check = [&](std::string_view after, const Program& now) {
    const Status valid = verify(now);
    EXPECT_TRUE(valid.ok()) << what << " after " << after << ": " << valid.error().text() << "\n" << print(now);
    BlobStore blobs;
    const auto again = parseProgram(print(now, &blobs), blobs);
    EXPECT_TRUE(again.ok() && *again == now) << print(now);
    Program copy = now;
    if (!copy.placed()) EXPECT_TRUE(placeArena(copy).ok());
    const std::vector<Tensor> results = run(copy, inputs);
    EXPECT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < std::min(results.size(), expected.size()); ++i)
      EXPECT_TRUE(testing_support::sameValues(results[i], expected[i], true)) << what << " after " << after << "\n"
                                                                              << print(plain) << print(now);
  };
  check("stack", *program);
  const auto after = [&](const MemoryPass& pass, const Program& now, bool) -> Result<bool> {
    check(pass.name, now);
    return true;
  };
  EXPECT_TRUE(planMemory(*program, {.before = {}, .after = after}).ok());
  for (const Instr& instr : program->instrs) {
    if (instr.kind != Instr::Kind::Fused) continue;
    const Result<BodyForm> form = formOf(*program, bodySteps(instr));
    EXPECT_TRUE(form.ok());
    ++counts.fused;
    counts.anchored += form->anchored ? 1 : 0;
    counts.reducing += form->reduces() ? 1 : 0;
    for (const Operand& operand : instr.operands) counts.inPlace += operand.access == Access::InOut ? 1 : 0;
  }
  return true;
}

// Rows, columns, scalars and whole matrices that are combined at random; some are saved, some into a state that is
// read.
class Matrices {
public:
  Matrices(Module& module, Rng& rng) : b_(*module.addFunction("main")), rng_(rng) {
    const auto input = [&](const char* name, Shape shape) {
      values_.push_back(b_.input(name, Type(ElemKind::Float32, std::move(shape))));
    };
    input("x", {3, 4});
    input("row", {3, 1});
    input("column", {4});
    input("one", {});
    condition_ = b_.input("condition", Type(ElemKind::Bool, Shape{3, 4}));
    predicate_ = b_.input("predicate", Type(ElemKind::Bool, Shape{}));
    square_ = b_.input("square", Type(ElemKind::Float32, Shape{4, 4}));
    state_ = b_.input("state", Type(ElemKind::Float32, Shape{3, 4}));
  }

  const Function& grow(int count) {
    values_.push_back(state_);
    for (int i = 0; i < count; ++i) values_.push_back(next());
    for (size_t i = 0; i < values_.size(); ++i)
      if (i + 3 >= values_.size() || rng_.between(0, 9) == 0) b_.output("y" + std::to_string(i), values_[i]);
    return b_.function();
  }

private:
  bool isWhole(Value v) const { return v.shape() == Shape{3, 4}; }
  // Late values more often, so that chains grow long.
  Value any() {
    const auto size = static_cast<int64_t>(values_.size());
    return values_[static_cast<size_t>(rng_.flip() ? rng_.between(std::max<int64_t>(0, size - 4), size - 1)
                                                   : rng_.between(0, size - 1))];
  }
  Value whole() {
    const Value v = any();
    return isWhole(v) ? v : b_.add(v, values_.front());
  }

  Value next() {
    static const std::vector<std::string_view> kKinds = {"sum", "mean", "max", "min"};
    switch (rng_.between(0, 13)) {
      case 0:
      case 1:
        return b_.abs(any());
      case 2:
        return b_.tanh(any());
      case 3:
      case 4:
        return b_.add(whole(), any());
      case 5:
        return b_.mul(any(), any());
      case 6:
        return b_.max(whole(), any());
      case 7:
        return b_.where(condition_, whole(), whole());
      case 8:
        return b_.cast(b_.cast(any(), {.to = ElemKind::Float16}), {.to = ElemKind::Float32});
      case 9:
      case 10:
        if (rng_.between(0, 3) != 0) return b_.reduced(whole(), rng_.pick(kKinds), {1});
        return b_.reshaped(b_.abs(b_.reduced(whole(), rng_.pick(kKinds), {1}, false)), {3, 1});
      case 11:
        return rng_.flip() ? b_.matMul(whole(), square_) : b_.reshaped(b_.reshaped(whole(), {4, 3}), {3, 4});
      case 12:
        return rng_.flip() ? b_.reduced(whole(), "sum", {0}) : b_.splat({.value = 2, .shape = {3, 4}});
      default:
        if (rng_.flip()) {
          b_.when(predicate_);
          const Value v = b_.neg(whole());
          b_.when({});
          return v;
        }
        b_.save(b_.abs(whole()), static_cast<Placeholder*>(state_.node));
        return b_.neg(state_);
    }
  }

  Builder b_;
  Rng& rng_;
  std::vector<Value> values_;
  Value condition_, predicate_, square_, state_;
};

TEST(StackRandom, MatricesStayTheSame) {
  Counts counts;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Module module;
    Rng rng(seed);
    compare(Matrices(module, rng).grow(20), "seed " + std::to_string(seed), rng, counts);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(counts.fused, 300U);
  EXPECT_GT(counts.anchored, 20U);
  EXPECT_GT(counts.reducing, 60U);
  EXPECT_GT(counts.inPlace, 60U);
}

TEST(StackRandom, AnyOperatorsStayTheSame) {
  Counts counts;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Module module;
    Rng rng(seed);
    RandomOptions options;
    options.predicates = 0;
    options.maxElements = 128;
    options.kinds = kindSet(ElemKind::Float32, ElemKind::Int32, ElemKind::Bool);
    options.allowed = [](const OpDef& op) { return op.kind != OpKind::Composite; };
    RandomGraph random(module, seed, options);
    compare(*random.addFunction("main", 25), "seed " + std::to_string(seed), rng, counts);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(counts.fused, 60U);
}

}  // namespace
}  // namespace aglow
