// What the verifier of nests refuses: a valid nest is broken in one place each time.
#include "codegen/nest/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "codegen/nest/build.h"
#include "fuse/fuse.h"
#include "graph/builder.h"
#include "inst/irgen.h"

namespace aglow::nest {
namespace {

// y = exp(x - max(x)) along rows, as f16; x is read in two passes, max kept as a number.
Nest rowNest() {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value x = b.input("x", Type(ElemKind::Float32, Shape{3, 8}));
  const Value top = b.reduce(x, {.kind = "max", .axes = {1}});
  const Value y = b.exp(b.sub(x, top));
  const Value sum = b.reduce(y, {.axes = {1}});
  b.output("y", b.cast(b.div(y, sum), {.to = ElemKind::Float16}));
  Result<Program> program = generate(b.function());
  EXPECT_TRUE(program.ok());
  EXPECT_TRUE(fuseInstructions(*program, fuseEverything()).ok());
  for (const Instr& instr : program->instrs)
    if (isNest(*program, instr)) return nestOf(*program, instr);
  ADD_FAILURE() << "there is no nest";
  return {};
}

struct Fault {
  const char* message;
  std::function<void(Nest&)> make;
};

int find(const Nest& nest, Expr::Op op) {
  for (size_t i = 0; i < nest.values.size(); ++i)
    if (nest.values[i].op == op) return static_cast<int>(i);
  ADD_FAILURE() << "no such value";
  return 0;
}
Expr& first(Nest& nest, Expr::Op op) { return nest.values[static_cast<size_t>(find(nest, op))]; }

TEST(NestVerifier, RefusesWhatIsBroken) {
  const Nest valid = rowNest();
  const Status fine = verify(valid);
  ASSERT_TRUE(fine.ok()) << fine.error().text();
  ASSERT_EQ(valid.stages.size(), 3U);
  ASSERT_EQ(valid.rows.size(), 1U);
  const Fault faults[] = {
      {"no axis", [](Nest& n) { n.axes.clear(); }},
      {"parallel axis", [](Nest& n) { n.axes.push_back({.extent = 1}); }},
      {"is cut", [](Nest& n) { n.chunk = 4; }},
      {"reductions without a row", [](Nest& n) { n.axes[1].role = Axis::Role::Parallel; }},
      {"is of nothing", [](Nest& n) { n.accesses[0].operand = 9; }},
      {"takes f32 for i32", [](Nest& n) { n.accesses[0].kind = ElemKind::Int32; }},
      {"strides for", [](Nest& n) { n.accesses[0].strides.pop_back(); }},
      {"reaches from", [](Nest& n) { n.accesses[0].strides[0] = 100; }},
      {"reaches from", [](Nest& n) { n.accesses[0].offset = -1; }},
      {"no stage", [](Nest& n) { n.stages.clear(); }},
      {"belongs to no stage", [](Nest& n) { n.reductions.push_back(n.reductions[0]); }},
      {"outside of all blocks", [](Nest& n) { n.values.push_back(n.values[0]); }},
      {"a block holds", [](Nest& n) { --n.stages[1].each.begin; }},
      {"is listed twice", [](Nest& n) { n.stages[0].reductions = {0, 0}; }},
      {"a value that is not known", [](Nest& n) { n.reductions[0].value = n.stages[1].each.begin; }},
      {"cannot combine", [](Nest& n) { n.reductions[0].combine = Scalar::Sub; }},
      {"stored where it is not known", [](Nest& n) { n.stages[2].each.stores[0].value = 0; }},
      {"cannot be written", [](Nest& n) { n.stages[2].each.stores[0].access = 0; }},
      {"is stored as", [](Nest& n) { n.stages[2].each.stores[0].value = n.stages[2].each.begin; }},
      {"moves along the row", [](Nest& n) { first(n, Expr::Op::Reduced) = {.op = Expr::Op::Load, .a = 0}; }},
      {"of another kind", [](Nest& n) { first(n, Expr::Op::Load).kind = ElemKind::Int32; }},
      {"not one conversion", [](Nest& n) { first(n, Expr::Op::Convert).kind = ElemKind::Int8; }},
      {"row is not there", [](Nest& n) { n.stages[1].each.stores.clear(); }},
      {"not complete", [](Nest& n) { first(n, Expr::Op::Reduced).a = 1; }},
      {"is not known", [](Nest& n) { first(n, Expr::Op::Apply).a = 0; }},
      {"is not known", [](Nest& n) { first(n, Expr::Op::Apply).b = static_cast<int>(n.values.size()); }},
      {"does not give", [](Nest& n) { first(n, Expr::Op::Apply).kind = ElemKind::Float64; }},
      {"does not give", [](Nest& n) { first(n, Expr::Op::Apply).scalar = Scalar::And; }},
  };
  for (const Fault& fault : faults) {
    Nest broken = valid;
    fault.make(broken);
    const Status refused = verify(broken);
    ASSERT_FALSE(refused.ok()) << fault.message;
    EXPECT_THAT(refused.error().text(), ::testing::HasSubstr(fault.message));
  }
}

}  // namespace
}  // namespace aglow::nest
