#include "optimize/schedule.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <unordered_map>

#include "graph/builder.h"
#include "inst/irgen.h"
#include "inst/verifier.h"
#include "random_graph.h"

namespace aglow {
namespace {

Type row(int64_t elements) { return {ElemKind::Float32, Shape{elements}}; }

void expectTopological(const Function& function, const Schedule& s) {
  ASSERT_EQ(s.order.size(), function.size());
  std::unordered_map<const Node*, size_t> at;
  for (size_t i = 0; i < s.order.size(); ++i) EXPECT_TRUE(at.emplace(s.order[i], i).second);
  for (const Node* node : s.order)
    for (const Value v : node->inputs())
      if (v && !v.node->isStorage()) EXPECT_LT(at.at(v.node), at.at(node));
}

// The best of all orders of nodes that are neither views nor work in place: what is alive depends only on the set of
// nodes that ran, so the best way to each set is enough.
int64_t bestPeak(const Function& function) {
  std::vector<const Node*> nodes;
  std::unordered_map<const Node*, size_t> number;
  for (const auto& node : function.nodes()) {
    number.emplace(node.get(), nodes.size());
    nodes.push_back(node.get());
  }
  const size_t sets = size_t{1} << nodes.size();
  std::vector<size_t> needs(nodes.size()), users(nodes.size());
  std::vector<int64_t> bytes(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const Value v : nodes[i]->inputs())
      if (!v.node->isStorage()) needs[i] |= size_t{1} << number.at(v.node);
    bool saved = nodes[i]->op() == Op::Save;
    for (const Use& use : nodes[i]->uses()) {
      users[i] |= size_t{1} << number.at(use.user);
      saved = saved || use.user->op() == Op::Save;
    }
    bytes[i] = saved ? 0 : (nodes[i]->type().bytes() + 63) / 64 * 64;
  }
  std::vector<int64_t> best(sets, INT64_MAX);
  best[0] = 0;
  for (size_t set = 0; set < sets; ++set) {
    if (best[set] == INT64_MAX) continue;
    int64_t live = 0;
    for (size_t i = 0; i < nodes.size(); ++i)
      if ((set >> i & 1) != 0 && (users[i] & ~set) != 0) live += bytes[i];
    for (size_t i = 0; i < nodes.size(); ++i) {
      if ((set >> i & 1) != 0 || (needs[i] & ~set) != 0) continue;
      int64_t& next = best[set | size_t{1} << i];
      next = std::min(next, std::max(best[set], live + bytes[i]));
    }
  }
  return best[sets - 1];
}

// Layers, their gradients, and what each layer's weights get of both, first of the first one: that is there last.
TEST(Schedule, TakesWhatIsThereFirst) {
  constexpr int kLayers = 12;
  constexpr int64_t kElements = 4096;
  Module module;
  Builder b(*module.addFunction("main"));
  std::vector<Value> layers{b.input("x", row(kElements))};
  for (int i = 0; i < kLayers; ++i) layers.push_back(b.concat({b.tanh(layers.back())}, {.axis = 0}));
  std::vector<Value> gradients(kLayers + 1);
  gradients[kLayers] = b.input("g", row(kElements));
  for (int i = kLayers; i-- > 0;)
    gradients[static_cast<size_t>(i)] =
        b.concat({b.mul(gradients[static_cast<size_t>(i) + 1], layers.back())}, {.axis = 0});
  for (size_t i = 0; i < kLayers; ++i)
    b.output("w" + std::to_string(i), b.reduced(b.mul(layers[i], gradients[i]), "sum", {0}));
  const Schedule s = scheduleNodes(b.function());
  expectTopological(b.function(), s);
  EXPECT_LT(s.peak, (kLayers + 5) * kElements * 4);
  EXPECT_GT(s.givenPeak, (2 * kLayers - 3) * kElements * 4);
}

TEST(Schedule, FinishesOneBranchBeforeItStartsTheNext) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value x = b.input("x", row(16));
  std::vector<Value> wide, narrow;
  for (int i = 0; i < 8; ++i) wide.push_back(b.concat(std::vector<Value>(64, x), {.axis = 0}));
  for (const Value v : wide) narrow.push_back(b.reduced(v, "sum", {0}));
  b.output("y", b.concat(narrow, {.axis = 0}));
  const Schedule s = scheduleNodes(b.function());
  expectTopological(b.function(), s);
  // All eight wide ones at once, or one at a time beside the narrow ones that are done.
  EXPECT_EQ(s.givenPeak, 8 * 4096 + 64);
  EXPECT_EQ(s.peak, 4096 + 8 * 64);
  EXPECT_EQ(s.peak, peakBytes(b.function(), s.order));
}

TEST(Schedule, KeepsTheGivenOrderWhereNothingIsGained) {
  Module module;
  Builder b(*module.addFunction("main"));
  Value v = b.input("x", row(16));
  for (int i = 0; i < 5; ++i) v = b.neg(v);
  b.output("y", v);
  const Schedule s = scheduleNodes(b.function());
  EXPECT_EQ(s.strategy, "given");
  size_t i = 0;
  for (const auto& node : b.function().nodes()) EXPECT_EQ(s.order[i++], node.get());
}

TEST(Schedule, CountsViewsInPlaceAndSavedResultsAsIrgenAndMemoryDo) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value x = b.input("x", row(16));
  const Value a = b.add(x, x);                             // 64 bytes
  const Value r = b.neg(b.reshape(a, {.shape = {4, 4}}));  // over a
  const Value m = b.matMul(r, r);                          // not over r
  b.output("y", b.reshape(b.neg(m), {.shape = {16}}));     // over m, in y
  EXPECT_EQ(scheduleNodes(b.function()).peak, 128);
}

TEST(Schedule, LeavesReadsAndWritesOfAPlaceholderInOrder) {
  Module module;
  Builder b(*module.addFunction("main"));
  Placeholder* state = module.addPlaceholder("state", row(16));
  // Read late and large, written early: the order that saves most memory would be wrong.
  const Value before = b.named("before").concat(std::vector<Value>(64, state->result()), {.axis = 0});
  b.save(b.input("x", row(16)), state);
  const Value after = b.named("after").concat(std::vector<Value>(64, state->result()), {.axis = 0});
  b.output("sum", b.reduced(after, "sum", {0}));
  b.output("old", b.reduced(before, "sum", {0}));
  const Schedule s = scheduleNodes(b.function());
  expectTopological(b.function(), s);
  const auto at = [&](std::string_view name) {
    return std::find_if(s.order.begin(), s.order.end(), [&](const Node* n) { return n->name() == name; });
  };
  EXPECT_LT(at("before"), at("save"));
  EXPECT_LT(at("save"), at("after"));
}

TEST(Schedule, IsNeverWorseThanTheGivenOrderAndNearTheBest) {
  int compared = 0, best = 0;
  for (uint64_t seed = 0; seed < 80; ++seed) {
    Random random(seed);
    Module module;
    Builder b(*module.addFunction("main"));
    std::vector<Value> values = {b.input("x", row(16))};
    for (int i = 0; i < 6; ++i) {
      std::vector<Value> parts;
      for (int64_t k = random.between(1, 3); k > 0; --k) parts.push_back(random.pick(values));
      values.push_back(b.concat(parts, {.axis = 0}));
      if (random.chance(0.3)) values.push_back(b.slice(values.back(), {.starts = {0}, .sizes = {16}}));
    }
    std::vector<Value> ends;
    for (const auto& node : b.function().nodes())
      if (node->uses().empty()) ends.push_back(node->result());
    for (const Value v : ends) b.output("y", b.reduced(v, "sum", {0}));
    const Schedule s = scheduleNodes(b.function());
    expectTopological(b.function(), s);
    EXPECT_LE(s.peak, s.givenPeak);
    if (b.function().size() > 13) continue;
    const int64_t optimum = bestPeak(b.function());
    ++compared;
    best += s.peak == optimum ? 1 : 0;
    EXPECT_GE(s.peak, optimum);
    EXPECT_LE(static_cast<double>(s.peak), 1.5 * static_cast<double>(optimum)) << seed;
  }
  EXPECT_GT(compared, 20);
  EXPECT_GT(best, compared * 8 / 10);
}

TEST(Schedule, RandomGraphsStayValidInTheNewOrder) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Module module;
    RandomOptions options;
    options.allowed = [](const OpDef& op) { return op.kind != OpKind::Composite; };
    const Function* function = RandomGraph(module, seed, options).addFunction("main", 20);
    const Schedule s = scheduleNodes(*function);
    expectTopological(*function, s);
    const auto program = generate(*function, s.order);
    ASSERT_TRUE(program.ok()) << program.error().text();
    EXPECT_TRUE(verify(*program).ok()) << verify(*program).error().text();
  }
}

}  // namespace
}  // namespace aglow
