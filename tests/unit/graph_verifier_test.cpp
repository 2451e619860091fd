// Modules that break one rule each; every fault is found and named.
#include "graph/verifier.h"

#include <gtest/gtest.h>

#include "graph/builder.h"
#include "random_graph.h"

namespace aglow {
namespace {

const Type kVector(ElemKind::Float32, {4});

struct Fixture : ::testing::Test {
  Module module;
  Function& f = *module.addFunction("main");
  Builder b{f};
  Value x = b.input("x", kVector);
  Value y = b.named("y").relu(x);

  std::string fault() const {
    const Status status = verify(module);
    if (status.ok()) return "";
    EXPECT_EQ(status.error().code, Code::BadVerify);
    return status.error().where + ": " + status.error().message;
  }
};
using GraphVerifier = Fixture;

// Reaches through what the interface protects, to do what only a fault could.
template <class T>
T& forced(const T& value) {
  return const_cast<T&>(value);
}

TEST_F(GraphVerifier, AcceptsWhatIsRight) {
  b.output("out", y);
  EXPECT_EQ(fault(), "");
  RandomGraph(module, 1).addFunction("random", 50);
  EXPECT_EQ(fault(), "");
}

TEST_F(GraphVerifier, Order) {
  const Value z = b.named("z").relu(y);
  f.move(y.node, nullptr);
  EXPECT_EQ(fault(),
            "function 'main': node 'z' (Relu): operand 0 is 'y', which does not stand before it in the function");
  f.move(z.node, nullptr);
  EXPECT_EQ(fault(), "");
  y.node->setInput(0, z);
  EXPECT_EQ(fault(),
            "function 'main': node 'y' (Relu): operand 0 is 'z', which does not stand before it in the function");
}

TEST_F(GraphVerifier, OperandsOfAnotherFunction) {
  Builder other(*module.addFunction("other"));
  const Value z = other.named("z").relu(x);
  z.node->setInput(0, y);
  EXPECT_EQ(fault(),
            "function 'other': node 'z' (Relu): operand 0 is 'y', which does not stand before it in the function");
  z.node->setInput(0, x);
}

TEST_F(GraphVerifier, OperandsOfAnotherModule) {
  Module other;
  const Value foreign = other.addPlaceholder("x", kVector)->result();
  y.node->setInput(0, foreign);
  EXPECT_EQ(fault(), "function 'main': node 'y' (Relu): operand 0 is not a node of the module");
  y.node->setInput(0, x);
  const Value p = other.addPlaceholder("p", Type(ElemKind::Bool, {}))->result();
  y.node->setPredicate(p);
  EXPECT_EQ(fault(), "function 'main': node 'y' (Relu): the predicate is not a node of the module");
  y.node->setPredicate({});
}

TEST_F(GraphVerifier, ResultsThatDoNotExist) {
  b.named("z").relu(y).node->setInput(0, {y.node, 1});
  EXPECT_EQ(fault(), "function 'main': node 'z' (Relu): operand 0 is result 1 of 'y', which has 1");
}

TEST_F(GraphVerifier, Types) {
  f.add(Attrs(opDef(Op::Neg)), {Type(ElemKind::Float32, {5})}, {x}, "z");
  EXPECT_EQ(fault(), "function 'main': node 'z' (Neg): result 0: expected f32[4], got f32[5]");
}

TEST_F(GraphVerifier, ResultCount) {
  f.add(Attrs(opDef(Op::Neg)), {kVector, kVector}, {x}, "z");
  EXPECT_EQ(fault(), "function 'main': node 'z' (Neg): expected 1 results, got 2");
}

TEST_F(GraphVerifier, OperatorRules) {
  f.add(Attrs(opDef(Op::Add)), {kVector}, {x}, "z");
  EXPECT_EQ(fault(), "function 'main': node 'z' (Add): Add needs its operand 'b' (got 1 operands)");
}

TEST_F(GraphVerifier, Predicates) {
  y.node->setPredicate(x);
  EXPECT_EQ(fault(), "function 'main': node 'y' (Relu): expected a predicate of type bool[] or bool[n], got f32[4]");
  y.node->setPredicate(b.input("rows", Type(ElemKind::Bool, {4})));
  EXPECT_EQ(fault(), "");
  y.node->setPredicate(b.input("matrix", Type(ElemKind::Bool, {4, 1})));
  EXPECT_EQ(fault(), "function 'main': node 'y' (Relu): expected a predicate of type bool[] or bool[n], got bool[4,1]");
}

TEST_F(GraphVerifier, Saves) {
  const Attrs save(opDef(Op::Save));
  Node* node = f.add(save, {}, {y, y}, "s");
  EXPECT_EQ(fault(), "function 'main': node 's' (Save): expected a placeholder to save into, got 'y' (Relu)");
  node->setInput(1, b.input("short", Type(ElemKind::Float32, {3})));
  EXPECT_EQ(fault(), "function 'main': node 's' (Save): expected f32[3] as 'short' has it, got f32[4]");
  node->setInput(1, {});
  EXPECT_EQ(fault(), "function 'main': node 's' (Save): expected a value and a target, got 2 operands");
  node->setInput(1, b.input("out", kVector));
  EXPECT_EQ(fault(), "");
  f.add(save, {}, {x, node->input(1)}, "t");
  EXPECT_EQ(fault(), "function 'main': node 't' (Save): 'out' is written twice");
}

TEST_F(GraphVerifier, OtherFunctionsMayWriteTheSame) {
  b.output("out", y);
  module.clone(f, "copy");
  EXPECT_EQ(fault(), "");
}

TEST_F(GraphVerifier, FunctionNames) {
  module.addFunction("main");
  EXPECT_EQ(fault(), ": two functions are named 'main'");
}

TEST_F(GraphVerifier, NodeNames) {
  b.named("z").relu(x);
  forced(f.nodes().back()->name()) = "y";
  EXPECT_EQ(fault(), "function 'main': node 'y' (Relu): its name is taken by another node");
}

TEST_F(GraphVerifier, StorageNames) {
  forced(x.node->name()) = "other";
  EXPECT_EQ(fault(), "node 'other' (Placeholder): its name leads to another storage");
}

TEST_F(GraphVerifier, ConstantsHaveTheirBytes) {
  Constant* c = module.addConstant("c", Tensor(kVector));
  forced(c->types())[0] = Type(ElemKind::Float32, {5});
  EXPECT_EQ(fault(), "node 'c' (Constant): expected bytes of type f32[5], got f32[4]");
  forced(c->types())[0] = Type();
  forced(c->tensor()) = Tensor();
  EXPECT_EQ(fault(), "node 'c' (Constant): a constant without bytes");
}

TEST_F(GraphVerifier, UseLists) {
  const Value z = b.named("z").add(x, y);
  std::vector<Use>& uses = forced(y.node->uses());
  const std::vector<Use> right = uses;

  uses.clear();
  EXPECT_EQ(fault(), ": 3 operands in the module, but 2 uses");
  uses = {right[0], right[0]};
  EXPECT_EQ(fault(), "function 'main': node 'y' (Relu): its list of uses names operand 1 of 'z' twice");
  uses = {{z.node, 0}};
  EXPECT_EQ(fault(),
            "function 'main': node 'y' (Relu): its list of uses names operand 0 of 'z', which is another value");
  uses = {{z.node, 7}};
  EXPECT_EQ(fault(),
            "function 'main': node 'y' (Relu): its list of uses names operand 7 of 'z', which is another value");
  Module other;
  uses = {{other.addPlaceholder("p", kVector), 0}};
  EXPECT_EQ(fault(), "function 'main': node 'y' (Relu): its list of uses names a node that is not in the module");
  uses = right;
  EXPECT_EQ(fault(), "");
}

}  // namespace
}  // namespace aglow
