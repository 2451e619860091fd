#include "inst/cost.h"

#include <gmock/gmock.h>

#include "graph/builder.h"
#include "inst/irgen.h"

namespace aglow {
namespace {

// The cost of the only instruction of an operator's name in a graph.
template <class Build>
Cost costIn(std::string_view name, const Build& build) {
  Module module;
  Builder b(*module.addFunction("main"));
  b.output("y", build(b));
  const auto program = generate(b.function());
  EXPECT_TRUE(program.ok());
  for (const Instr& instr : program->instrs)
    if (instrName(instr) == name) return costOf(*program, instr);
  ADD_FAILURE() << "no instruction " << name;
  return {};
}

Type f32(const std::vector<int64_t>& dims) { return {ElemKind::Float32, Shape(dims)}; }

TEST(Cost, CountsProducts) {
  const Cost cost =
      costIn("MatMul", [](Builder& b) { return b.matMul(b.input("a", f32({2, 3, 4})), b.input("b", f32({4, 5}))); });
  EXPECT_EQ(cost.flops, 2 * 2 * 3 * 4 * 5);
  EXPECT_EQ(cost.bytes, 4 * (24 + 20 + 30));
}

TEST(Cost, CountsGroupedConvolutions) {
  const Cost cost = costIn("Conv", [](Builder& b) {
    return b.conv(b.input("x", f32({1, 4, 8, 8})), b.input("w", f32({6, 2, 3, 3})), b.input("b", f32({6})),
                  {.pads = {1, 1, 1, 1}, .group = 2});
  });
  EXPECT_EQ(cost.flops, 6 * 8 * 8 * (2 * 2 * 9 + 1));
  EXPECT_EQ(cost.bytes, 4 * (4 * 64 + 6 * 18 + 6 + 6 * 64));
}

TEST(Cost, CountsFormulasWindowsAndReductions) {
  const Type image = f32({1, 2, 4, 4});
  EXPECT_EQ(costIn("Add", [&](Builder& b) { return b.add(b.input("x", image), b.input("z", image)); }).flops, 32);
  EXPECT_EQ(costIn("MaxPool",
                   [&](Builder& b) { return b.maxPool(b.input("x", image), {.kernel = {2, 2}, .strides = {2, 2}}); })
                .flops,
            8 * 4);
  EXPECT_EQ(costIn("Reduce", [&](Builder& b) { return b.reduce(b.input("x", image), {.axes = {3}}); }).flops, 32);
}

TEST(Cost, CountsOnlyWhatIsMoved) {
  const Cost gather = costIn("Gather", [](Builder& b) {
    return b.gather(b.input("table", f32({1000, 8})), b.input("i", Type(ElemKind::Int64, Shape{2})), {.axis = 0});
  });
  EXPECT_EQ(gather.flops, 0);
  EXPECT_EQ(gather.bytes, 2 * 8 * 4 * 2 + 16);
  EXPECT_EQ(costIn("copy", [](Builder& b) { return b.input("x", f32({10})); }).bytes, 80);
}

TEST(Cost, AddsUpWhatIsFused) {
  Module module;
  Builder b(*module.addFunction("main"));
  b.output("y", b.relu(b.matMul(b.input("a", f32({3, 4})), b.input("b", f32({4, 5})))));
  auto program = generate(b.function());
  ASSERT_TRUE(program.ok());
  Instr fused{.kind = Instr::Kind::Fused};
  for (const Instr& instr : program->instrs)
    if (instr.kind == Instr::Kind::Compute) fused.body.push_back(instr);
  ASSERT_EQ(fused.body.size(), 2U);
  fused.operands = {fused.body[1].operands[0], fused.body[0].operands[1], fused.body[0].operands[2]};
  const Cost parts[] = {costOf(*program, fused.body[0]), costOf(*program, fused.body[1])};
  EXPECT_EQ(costOf(*program, fused).flops, parts[0].flops + parts[1].flops);
  EXPECT_EQ(costOf(*program, fused).bytes, 4 * (12 + 20 + 15));
}

}  // namespace
}  // namespace aglow
