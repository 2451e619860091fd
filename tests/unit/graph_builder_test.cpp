// Building graphs, and the bookkeeping of who uses what.
#include "graph/builder.h"

#include <gtest/gtest.h>

#include "graph/op_views.h"
#include "random_graph.h"
#include "round_trip.h"

namespace aglow {
namespace {

const Type kVector(ElemKind::Float32, {4});

struct Fixture : ::testing::Test {
  Module module;
  Function& f = *module.addFunction("main");
  Builder b{f};
  Value x = b.input("x", kVector);
};
using GraphBuilder = Fixture;
using GraphUses = Fixture;

TEST_F(GraphBuilder, InfersTypesAndNames) {
  const Value bias = b.constant(Tensor(Type(ElemKind::Float32, {2, 1})), "bias");
  b.named("sum");
  const Value sum = b.add(x, bias);
  const Value again = b.add(x, bias);
  EXPECT_EQ(sum.type(), Type(ElemKind::Float32, {2, 4}));
  EXPECT_EQ(sum.node->name(), "sum");
  EXPECT_EQ(again.node->name(), "sum.1");
  b.named("");
  EXPECT_EQ(b.relu(x).node->name(), "Relu");
  b.output("y", sum);
  expectRoundTrip(module);
}

TEST_F(GraphBuilder, BreakingARuleIsAnError) {
  const Value other = b.input("other", Type(ElemKind::Float32, {3}));
  const Result<Value> sum = building([&] { return b.add(x, other); });
  ASSERT_FALSE(sum.ok());
  EXPECT_EQ(sum.error().code, Code::BadNode);
  const Result<int> saved = building([&] {
    b.save(x, static_cast<Placeholder*>(other.node));
    return 0;
  });
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(f.size(), 0u) << "nothing is added";
}

TEST_F(GraphBuilder, PlacesNodesAndPredicates) {
  const Value p = b.input("p", Type(ElemKind::Bool, {}));
  const Value last = b.relu(x);
  b.before(last.node).when(p);
  const Value first = b.neg(x);
  EXPECT_EQ(f.nodes().front().get(), first.node);
  EXPECT_EQ(first.node->predicate(), p);
  EXPECT_EQ(p.node->useCount(0), 1);
  expectRoundTrip(module);
}

TEST_F(GraphBuilder, ShortFormsLeaveOutWhatChangesNothing) {
  EXPECT_EQ(b.reshaped(x, {4}), x);
  EXPECT_EQ(b.transposed(x, {0}), x);
  EXPECT_EQ(b.casted(x, ElemKind::Float32), x);
  EXPECT_EQ(f.size(), 0u);
  EXPECT_EQ(b.reshaped(x, {2, 2}).shape(), Shape({2, 2}));
  EXPECT_EQ(b.casted(x, ElemKind::Int8).kind(), ElemKind::Int8);
  EXPECT_EQ(b.reduced(b.reshaped(x, {2, 2}), "max", {1, 0}, false).rank(), 0);
  expectRoundTrip(module);
}

TEST_F(GraphBuilder, ViewsNameOperandsAndAttributes) {
  const Value image = b.input("image", Type(ElemKind::Float32, {1, 2, 5}));
  const Value filter = b.input("filter", Type(ElemKind::Float32, {3, 2, 1}));
  const Value conv = b.conv(image, filter, {}, {.strides = {2}});
  const auto view = viewAs<ConvNode>(conv);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->x(), image);
  EXPECT_EQ(view->filter(), filter);
  EXPECT_FALSE(view->bias());
  EXPECT_EQ(view->strides(), std::vector<int64_t>{2});
  EXPECT_FALSE(viewAs<ReluNode>(conv).has_value());
  expectRoundTrip(module);
}

TEST_F(GraphUses, FollowOperands) {
  const Value y = b.input("y", kVector);
  const Value sum = b.add(x, x);
  EXPECT_EQ(x.node->uses().size(), 2u);
  sum.node->setInput(1, y);
  EXPECT_EQ(x.node->uses().size(), 1u);
  EXPECT_EQ(y.node->uses().size(), 1u);
  EXPECT_EQ(y.node->uses()[0].user, sum.node);
  EXPECT_EQ(y.node->uses()[0].slot, 1);
  EXPECT_THROW(sum.node->setInput(2, y), InternalError);
  expectRoundTrip(module);
}

TEST_F(GraphUses, AreCountedForEachResult) {
  Node* top = b.topK(x, {.k = 2});
  b.relu(top->result(0));
  b.neg(top->result(0));
  EXPECT_EQ(top->useCount(0), 2);
  EXPECT_EQ(top->useCount(1), 0);
}

TEST_F(GraphUses, MoveToAnotherValue) {
  const Value p = b.input("p", Type(ElemKind::Bool, {}));
  const Value q = b.input("q", Type(ElemKind::Bool, {}));
  const Value y = b.relu(x);
  const Value z = b.neg(x);
  b.when(p);
  const Value sum = b.add(y, y);
  replaceAllUses(y, z);
  replaceAllUses(p, q);
  EXPECT_EQ(sum.node->inputs(), (std::vector<Value>{z, z}));
  EXPECT_EQ(sum.node->predicate(), q);
  EXPECT_TRUE(y.node->uses().empty());
  EXPECT_TRUE(p.node->uses().empty());
  EXPECT_THROW(replaceAllUses(sum, q), InternalError) << "the types differ";
  expectRoundTrip(module);
}

TEST_F(GraphUses, OneResultMovesAlone) {
  Node* top = b.topK(x, {.k = 4});
  const Value y = b.relu(top->result(0));
  const Value z = b.neg(top->result(1));
  replaceAllUses(top->result(0), x);
  EXPECT_EQ(y.node->input(0), x);
  EXPECT_EQ(z.node->input(0), top->result(1));
  expectRoundTrip(module);
}

TEST_F(GraphUses, ErasingAsksForNone) {
  const Value y = b.relu(x);
  const Value z = b.relu(y);
  EXPECT_THROW(f.erase(y.node), InternalError);
  f.erase(z.node);
  f.erase(y.node);
  EXPECT_TRUE(x.node->uses().empty());
  b.named("Relu");
  EXPECT_EQ(b.relu(x).node->name(), "Relu") << "the name is free again";
  expectRoundTrip(module);
}

TEST_F(GraphUses, MovingChangesTheOrder) {
  Node* y = b.relu(x).node;
  Node* z = b.neg(x).node;
  f.move(z, y);
  EXPECT_EQ(f.next(z), y);
  EXPECT_EQ(f.next(y), nullptr);
  f.move(z, nullptr);
  EXPECT_EQ(f.next(y), z);
  expectRoundTrip(module);
}

TEST_F(GraphUses, FreezingMakesAConstantOfTheSameName) {
  const Value y = b.relu(x);
  const Tensor value = Tensor::of(kVector, std::vector{1, 2, 3, 4});
  const Constant* frozen = module.freeze(static_cast<Placeholder*>(x.node), value);
  EXPECT_EQ(frozen->name(), "x");
  EXPECT_EQ(module.findStorage("x"), frozen);
  EXPECT_EQ(asConstant(y.node->input(0)), frozen);
  EXPECT_EQ(frozen->tensor(), value);
  EXPECT_TRUE(module.placeholders().empty());
  EXPECT_EQ(module.addPlaceholder("x", kVector)->name(), "x.1");
  expectRoundTrip(module);
}

TEST_F(GraphUses, WhatIsWrittenCannotBeFrozen) {
  b.output("y", b.relu(x));
  auto* y = static_cast<Placeholder*>(module.findStorage("y"));
  EXPECT_THROW(module.freeze(y, Tensor(kVector)), InternalError);
}

TEST_F(GraphUses, ClonesShareStorageOnly) {
  b.when(b.input("p", Type(ElemKind::Bool, {})));
  b.output("y", b.add(b.relu(x), x));
  Function* copy = module.clone(f, "copy");
  EXPECT_EQ(difference(f, *copy), "");
  EXPECT_EQ(inputsOf(*copy), inputsOf(f));
  EXPECT_EQ(outputsOf(*copy), outputsOf(f));
  expectRoundTrip(module);
  module.eraseFunction(copy);
  EXPECT_EQ(x.node->uses().size(), 2u);
  expectRoundTrip(module);
}

// Any sequence of changes leaves lists of uses that the verifier accepts.
TEST_F(GraphUses, SurviveRandomChanges) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Module changed;
    RandomGraph graph(changed, seed);
    Function* g = graph.addFunction("main", 30);
    Random& random = graph.random();
    for (int step = 0; step < 60 && g->size() > 0; ++step) {
      std::vector<Node*> nodes;
      for (const auto& node : g->nodes()) nodes.push_back(node.get());
      Node* node = random.pick(nodes);
      switch (random.between(0, 3)) {
        case 0:
          if (node->uses().empty()) g->erase(node);
          break;
        case 1:
          if (node->resultCount() > 0) {
            const Value stand = changed.addPlaceholder("stand", node->type())->result();
            replaceAllUses(node->result(), stand);
          }
          break;
        case 2:
          node->setPredicate(random.chance(0.5) ? Value{}
                                                : changed.addPlaceholder("p", Type(ElemKind::Bool, {}))->result());
          break;
        default:
          if (node->inputCount() > 0 && node->op() != Op::Save && !isConstant(node->input(0)))
            node->setInput(0, changed.addPlaceholder("in", node->input(0).type())->result());
      }
      const Status verified = verify(changed);
      ASSERT_TRUE(verified.ok()) << verified.error().text();
    }
    expectRoundTrip(changed);
  }
}

}  // namespace
}  // namespace aglow
