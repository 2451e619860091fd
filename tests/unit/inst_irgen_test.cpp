#include "inst/irgen.h"

#include <gmock/gmock.h>

#include "graph/builder.h"
#include "inst/text.h"
#include "inst/verifier.h"

namespace aglow {
namespace {

using ::testing::ElementsAre;
using Kind = Instr::Kind;

const Type kRow(ElemKind::Float32, Shape{4});

std::vector<std::string> names(const Program& program) {
  std::vector<std::string> out;
  for (const Instr& instr : program.instrs) {
    std::string text(instrName(instr));
    for (const Operand& operand : instr.operands)
      text += " " + (operand.region == kNoRegion ? "-" : program[operand.region].name);
    out.push_back(text);
  }
  return out;
}

TEST(Irgen, MarksEachBufferFromItsFirstToItsLastUse) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value x = b.input("x", kRow);
  const Value s = b.named("s").add(x, x);
  const Value t = b.named("t").neg(s);
  b.output("y", b.named("u").mul(s, t));
  const auto program = generate(b.function());
  ASSERT_TRUE(program.ok()) << program.error().text();
  EXPECT_THAT(names(*program), ElementsAre("alloc s", "Add s x x", "alloc t", "Neg t s", "alloc u", "Mul u s t",
                                           "dealloc s", "dealloc t", "copy y u", "dealloc u"));
  EXPECT_EQ(program->instrs[1].origin, "s");
  EXPECT_THAT(program->inputs(), ElementsAre(0));
  EXPECT_THAT(program->outputs(), ElementsAre(1));
}

TEST(Irgen, TurnsReshapesIntoViewsThatKeepTheirBaseAlive) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value s = b.named("s").neg(b.input("x", kRow));
  const Value v = b.named("v").reshape(s, {.shape = {2, 2}});
  const Value w = b.named("w").reshape(v, {.shape = {4, 1}});
  b.output("y", b.named("t").neg(w));
  const auto program = generate(b.function());
  ASSERT_TRUE(program.ok());
  EXPECT_THAT(names(*program), ElementsAre("alloc s", "Neg s x", "alloc t", "tensorview w", "Neg t w", "dealloc s",
                                           "copy y t", "dealloc t"));
  const Extent extent = program->extent(program->instrs[3].operands[0].region);
  EXPECT_EQ((*program)[extent.root].name, "s");
  EXPECT_EQ(extent.end, 16);
}

TEST(Irgen, KeepsPredicatesAndReadWrittenPlaceholders) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value p = b.input("p", Type(ElemKind::Bool, Shape{}));
  Placeholder* state = module.addPlaceholder("state", kRow);
  b.when(p).save(b.named("next").add(state->result(), state->result()), state);
  const auto program = generate(b.function());
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->instrs[1].predicate, 0);
  EXPECT_THAT(program->inputs(), ElementsAre(0, 1));
  EXPECT_THAT(program->outputs(), ElementsAre(1));
  EXPECT_EQ((*program)[1].as<PlaceholderInit>()->access, Access::InOut);
}

TEST(Irgen, CopiesWhatAViewSeesOfAPlaceholderThatIsWritten) {
  Module module;
  Builder b(*module.addFunction("main"));
  Placeholder* state = module.addPlaceholder("state", kRow);
  const Value v = b.named("v").reshape(state->result(), {.shape = {2, 2}});
  b.save(b.input("x", kRow), state);
  b.output("y", b.named("t").neg(v));
  const auto program = generate(b.function());
  ASSERT_TRUE(program.ok());
  EXPECT_THAT(names(*program), ElementsAre("alloc v.1", "tensorview v", "copy v.1 v", "copy state x", "alloc t",
                                           "Neg t v.1", "dealloc v.1", "copy y t", "dealloc t"));
}

TEST(Irgen, LeavesAPlaceholderAloneThatIsSavedOntoItself) {
  Module module;
  Builder b(*module.addFunction("main"));
  Placeholder* state = module.addPlaceholder("state", kRow);
  b.save(state->result(), state);
  b.output("y", b.named("s").neg(state->result()));
  b.when(b.input("p", Type(ElemKind::Bool, Shape{}))).save(state->result(), state);
  const auto program = generate(b.function());
  ASSERT_TRUE(program.ok());
  EXPECT_THAT(names(*program), ElementsAre("alloc s", "Neg s state", "copy y s", "dealloc s"));
  EXPECT_EQ((*program)[0].as<PlaceholderInit>()->access, Access::InOut);
  EXPECT_TRUE(verify(*program).ok());
}

TEST(Irgen, SharesOneSpaceOfNames) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value x = b.input("x", kRow);
  b.output("y", b.named("x").neg(x));
  const auto program = generate(b.function());
  ASSERT_TRUE(program.ok());
  EXPECT_THAT(names(*program), ElementsAre("alloc x.1", "Neg x.1 x", "copy y x.1", "dealloc x.1"));
}

TEST(Irgen, LeavesOutResultsOfKeptCompositesThatNobodyReads) {
  Module module;
  Builder b(*module.addFunction("main"));
  const auto f32 = [](Shape shape) { return Type(ElemKind::Float32, std::move(shape)); };
  const Value x = b.input("x", f32({3, 1, 2})), w = b.input("w", f32({1, 16, 2})), r = b.input("r", f32({1, 16, 4}));
  Node* lstm = b.named("l").lstm(x, w, r, {}, {}, {}, {}, {}, {});
  b.output("c", lstm->result(2));
  const auto program = generate(b.function());
  ASSERT_TRUE(program.ok());
  EXPECT_TRUE(verify(*program).ok());
  const std::string text = print(*program);
  EXPECT_THAT(text, ::testing::HasSubstr("LSTM @out %l, @out _, @out %l.y_c, @in %x, @in %w, @in %r\n"));
  const auto again = parseProgram(text);
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_TRUE(*again == *program);
}

TEST(Irgen, NamesTheFurtherResults) {
  Module module;
  Builder b(*module.addFunction("main"));
  Node* top = b.named("top").topK(b.input("x", kRow), {.k = 2});
  b.output("i", top->result(1));
  const auto program = generate(b.function());
  ASSERT_TRUE(program.ok());
  EXPECT_THAT(names(*program), ElementsAre("alloc top", "alloc top.indices", "TopK top top.indices x", "dealloc top",
                                           "copy i top.indices", "dealloc top.indices"));
}

TEST(Program, EqualityGoesByNamesNotByNumbers) {
  const auto make = [&](bool swapped) {
    Program p;
    const RegionId first = p.add({.name = swapped ? "b" : "a", .type = kRow, .source = PlaceholderInit{}});
    const RegionId second = p.add({.name = swapped ? "a" : "b", .type = kRow, .source = PlaceholderInit{}});
    p.instrs.push_back({.kind = Kind::Copy,
                        .operands = {{swapped ? second : first, Access::Out}, {swapped ? first : second, Access::In}}});
    return p;
  };
  EXPECT_TRUE(make(false) == make(true));
  Program other = make(false);
  std::swap(other.instrs[0].operands[0].region, other.instrs[0].operands[1].region);
  EXPECT_FALSE(make(false) == other);
}

TEST(Program, InitialValuesAreStable) {
  const Region splat{.name = "s", .type = kRow, .source = SplatInit{2.5}};
  EXPECT_THAT(initialValue(splat).doubles(), ElementsAre(2.5, 2.5, 2.5, 2.5));
  const Region xavier{.name = "w", .type = Type(ElemKind::Float32, Shape{1000}), .source = XavierInit{12, 7}};
  const std::vector<double> values = initialValue(xavier).doubles();
  EXPECT_EQ(values, initialValue(xavier).doubles());
  EXPECT_THAT(values, ::testing::Each(::testing::AllOf(::testing::Ge(-0.5), ::testing::Le(0.5))));
  EXPECT_LT(*std::min_element(values.begin(), values.end()), -0.45);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 0.45);
}

}  // namespace
}  // namespace aglow
