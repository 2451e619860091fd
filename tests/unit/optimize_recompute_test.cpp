#include "optimize/recompute.h"

#include <gmock/gmock.h>

#include "evaluate.h"
#include "graph/verifier.h"

namespace aglow {
namespace {

// As layers and what gradients need of them: each of `depth` values is read again, in the opposite order.
void addLayers(Module& module, int depth, bool reads) {
  Builder b(*module.addFunction("main"));
  const Type type(ElemKind::Float32, {8, 16});
  Rng rng(1);
  Value v = b.input("x", type);
  Placeholder* weight = b.state("w", testing_support::randomTensor(rng, Type(ElemKind::Float32, {16, 16})));
  std::vector<Value> kept;
  for (int i = 0; i < depth; ++i) {
    v = b.tanh(b.matMul(v, weight->result()));
    kept.push_back(b.reshaped(v, {16, 8}));
  }
  Value gradient = b.reshaped(v, {16, 8});
  for (int i = depth; i-- > 0;) gradient = b.tanh(b.sub(gradient, b.mul(kept[static_cast<size_t>(i)], gradient)));
  b.output("y", gradient);
  // What is computed again must see the state as it was.
  if (reads) b.save(b.add(weight->result(), b.reduced(b.reshaped(gradient, {8, 16}), "max", {0})), weight);
}

TEST(Recompute, TakesLessMemoryForTheSameBits) {
  for (const bool reads : {false, true}) {
    Module module;
    addLayers(module, 24, reads);
    Function& function = *module.functions().front();
    Function& other = *module.clone(function, "other");
    const int64_t before = recompute(other, INT64_MAX);
    EXPECT_EQ(other.size(), function.size());
    const int64_t after = recompute(other, before / 2);
    EXPECT_LE(after, before / 2);
    EXPECT_GT(testing_support::countOf(other, Op::MatMul), 24);
    const Status valid = verify(module);
    EXPECT_TRUE(valid.ok()) << valid.error().text();
    Rng rng(2);
    const NamedTensors bindings = testing_support::randomBindings(rng, function);
    EXPECT_TRUE(testing_support::sameResults(function, other, bindings, true));
  }
}

TEST(Recompute, GivesTheFewestBytesWhereTheTargetIsTooSmall) {
  Module module;
  addLayers(module, 24, false);
  const int64_t reached = recompute(*module.functions().front(), 1);
  EXPECT_GT(reached, 1);
  EXPECT_LT(reached, 24 * 8 * 16 * 4 / 2);
}

}  // namespace
}  // namespace aglow
