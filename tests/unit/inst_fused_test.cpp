#include "inst/fused.h"

#include <gmock/gmock.h>

#include "backends/interpreter/interpreter.h"
#include "inst/dot.h"
#include "inst/lifetimes.h"
#include "inst/text.h"
#include "inst/verifier.h"
#include "memory/pass_table.h"

namespace aglow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Program parsed(std::string_view body) {
  const std::string text =
      "declare {\n  %x = placeholder f32[2,3]\n  %w = constant f32[3] = [1, 2, 3]\n  %y = placeholder "
      "f32[2,3]\n"
      "  %r = placeholder f32[2,1]\n  %p = placeholder bool[]\n  %square = placeholder f32[3,3]\n}\n"
      "program @f(@in %x, @out %y, @in %r, @in %p, @in %square) {\n" +
      std::string(body) + "\n}\n";
  auto program = parseProgram(text);
  EXPECT_TRUE(program.ok()) << program.error().text();
  return *std::move(program);
}

std::string fault(std::string_view body) {
  const Status status = verify(parsed(body));
  return status.ok() ? "none" : status.error().text();
}

constexpr std::string_view kSoftmax = R"(  fused @out %y, @in %x from "max+below+exp+2 more" {
    %max = local f32[2,1]
    Reduce @out %max, @in %x {kind = max, axes = [1]}
    %below = local f32[2,3]
    Sub @out %below, @in %x, @in %max
    %exp = local f32[2,3]
    Exp @out %exp, @in %below
    %sum = local f32[2,1]
    Reduce @out %sum, @in %exp {axes = [1]}
    Div @out %y, @in %exp, @in %sum from "soft"
  }
)";

TEST(Fused, PrintsWhatItParsed) {
  const Program program = parsed(kSoftmax);
  EXPECT_TRUE(verify(program).ok()) << verify(program).error().text();
  EXPECT_THAT(print(program), HasSubstr(kSoftmax));
  const auto again = parseProgram(print(program));
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(*again == program);
  EXPECT_EQ(joinedOrigin(program.instrs[0].body), "max+below+exp+2 more");
  Program other = program;
  other.instrs[0].body[2].origin = "another";
  EXPECT_FALSE(other == program);
}

TEST(Fused, IsDrawnAsOneInstruction) {
  const std::string dot = drawDot(parsed(kSoftmax));
  EXPECT_THAT(dot, HasSubstr("0: fused\\nReduce\\nSub\\nExp\\nReduce\\nDiv"));
  EXPECT_THAT(dot, Not(HasSubstr("below")));
}

TEST(Fused, KnowsItsFormAndStages) {
  const Program program = parsed(kSoftmax);
  const std::vector<const Instr*> steps = bodySteps(program.instrs[0]);
  const Result<BodyForm> form = formOf(program, steps);
  ASSERT_TRUE(form.ok()) << form.error().text();
  EXPECT_EQ(form->shape, (Shape{2, 3}));
  EXPECT_EQ(form->rowAxes, 1);
  EXPECT_FALSE(form->anchored);
  EXPECT_THAT(stagesOf(program, steps), ElementsAre(0, 1, 1, 1, 2));
}

TEST(Fused, AcceptsTheThreeForms) {
  EXPECT_EQ(fault("fused @out %y, @in %x, @in %w if %p { %a = local f32[2,3] Add @out %a, @in %x, @in %w "
                  "Relu @out %y, @in %a }"),
            "none");
  EXPECT_EQ(fault(kSoftmax), "none");
  EXPECT_EQ(
      fault("fused @out %y, @in %x, @in %square, @in %w { %a = local f32[2,3] MatMul @out %a, @in %x, @in %square "
            "Add @out %y, @in %a, @in %w }"),
      "none");
  // A value of each row, and one that is stored as well as read on.
  EXPECT_EQ(fault("%m = alloc f32[2,1] fused @out %m, @out %y, @in %x, @in %r { Reduce @out %m, @in %x {axes = [1]} "
                  "%n = local f32[2,1] Add @out %n, @in %m, @in %r Div @out %y, @in %x, @in %n } dealloc %m"),
            "none");
}

struct Case {
  std::string_view body;
  std::string_view message;
};

TEST(Fused, RefusesWhatIsWrong) {
  const Case cases[] = {
      {"fused @out %y, @in %x { }", "the body is empty"},
      {"fused @out %y { Relu @out %y, @in %x }", "not what the body touches: fused @out %y, @in %x"},
      {"fused @inout %y, @in %x { Relu @out %y, @in %x }", "not what the body touches"},
      {"fused @out %y, @in %x, @in %w { Relu @out %y, @in %x }", "not what the body touches"},
      {"fused @in %x, @out %y { Relu @out %y, @in %x }", "not what the body touches"},
      {"fused @out %y, @in %x { %a = local f32[2,3] Relu @out %y, @in %a Relu @out %a, @in %x }",
       "'a' is read before it is written"},
      {"fused @out %y, @in %x { Relu @out %y, @in %x Neg @out %y, @in %x }", "'y' is written twice"},
      {"fused @out %y, @in %x { %a = local f32[2,3] Relu @out %a, @in %x Relu @inout %a, @in %a Neg @out %y, @in %a }",
       "'a' is written twice"},
      {"fused @out %y, @in %x { Relu @out %y, @in %x if %p }", "belongs to the instruction as a whole"},
      {"fused @out %y, @in %x { %a = local f32[2,3] Relu @out %y, @in %x }", "'a' is never written"},
      {"fused @out %y, @in %x { %a = local f32[2,3] Neg @out %a, @in %x Relu @out %y, @in %a } copy @out %y, @in %a",
       "'a' belongs to the body"},
      {"fused @out %y, @in %x { %a = local f32[2,3] Neg @out %a, @in %x Relu @out %y, @in %a } %v = tensorview %a at 0 "
       ": "
       "f32[3,2]",
       "a local has no bytes"},
      {"fused @out %y, @in %x { %a = local f32[2,3] Neg @out %a, @in %x Relu @out %y, @in %a } "
       "fused @out %y, @in %x { Neg @out %a, @in %x Relu @out %y, @in %a }",
       "'a' belongs to another instruction"},
      {"fused @out %y, @in %x { %a = local f32[2,3] Relu @out %a, @in %x Relu @out %y, @in %w }",
       "result 0 is f32[2,3], expected f32[3]"},
      {"copy @out %y, @in %x %v = tensorview %y at 0 : f32[2,3] fused @out %y, @in %v { Relu @out %y, @in %v }",
       "overlaps"},
      // Nothing but an anchor comes first.
      {"fused @out %y, @in %x, @in %square { %a = local f32[2,3] Relu @out %a, @in %x MatMul @out %y, @in %a, @in "
       "%square }",
       "MatMul stands after the first"},
      // Loops over different shapes.
      {"fused @out %y, @in %w, @in %x { %a = local f32[3] Neg @out %a, @in %w Add @out %y, @in %x, @in %a }",
       "the body's loop is over [3]"},
      {"fused @out %y, @in %x { %a = local f32[1,3] Reduce @out %a, @in %x {axes = [0]} Add @out %y, @in %x, @in %a }",
       "the body's loop is over [1,3]"},
      {"%s = alloc f32[3] fused @out %s, @in %square { %a = local f32[3] Reduce @out %a, @in %square {axes = [1], "
       "keepdims = false} %b = local f32[3,3] Add @out %b, @in %square, @in %a Reduce @out %s, @in %b {axes = [1], "
       "keepdims = false} } dealloc %s",
       "reads a of another shape"},
  };
  for (const Case& c : cases) EXPECT_THAT(fault(c.body), HasSubstr(c.message)) << c.body;
}

bool overwrites(std::string_view body, size_t input = 0) {
  const Program program =
      parsed(std::string("%a = alloc f32[2,3] copy @out %a, @in %x ") + std::string(body) + " dealloc %a");
  EXPECT_TRUE(verify(program).ok()) << verify(program).error().text();
  const auto fused = std::find_if(program.instrs.begin(), program.instrs.end(),
                                  [](const Instr& instr) { return instr.kind == Instr::Kind::Fused; });
  const std::span<const Operand> results = fused->results();
  const auto y =
      std::find_if(results.begin(), results.end(), [&](const Operand& o) { return program[o.region].name == "y"; });
  return mayOverwrite(program, *fused, input, static_cast<size_t>(y - results.begin()));
}

TEST(Fused, KnowsWhatItMayOverwrite) {
  EXPECT_TRUE(
      overwrites("fused @out %y, @in %a { %b = local f32[2,3] Exp @out %b, @in %a Add @out %y, @in %b, @in %a }"));
  // Read after the write.
  EXPECT_FALSE(
      overwrites("%z = alloc f32[2,3] fused @out %y, @out %z, @in %a { Exp @out %y, @in %a "
                 "Add @out %z, @in %y, @in %a } dealloc %z"));
  // The record of the writer does not take it.
  EXPECT_FALSE(
      overwrites("fused @out %y, @in %a, @in %w, @in %p { %b = local f32[2,3] Add @out %b, @in %a, @in %w "
                 "Where @out %y, @in %p, @in %b, @in %a }"));
  // Rows are read before the last instruction writes them.
  EXPECT_TRUE(
      overwrites("fused @out %y, @in %a { %m = local f32[2,1] Reduce @out %m, @in %a {axes = [1]} "
                 "Sub @out %y, @in %a, @in %m }"));
  EXPECT_FALSE(
      overwrites("%n = alloc f32[2,1] fused @out %y, @out %n, @in %a, @in %r { %m = local f32[2,1] "
                 "Reduce @out %m, @in %a {axes = [1]} Sub @out %y, @in %a, @in %m Add @out %n, @in %m, @in %r } "
                 "dealloc %n"));
  // What comes after it may follow from the result, but not from what rows are computed from again.
  EXPECT_TRUE(
      overwrites("%z = alloc f32[2,3] fused @out %y, @out %z, @in %a { %m = local f32[2,1] Reduce @out %m, @in %a "
                 "{axes = [1]} Sub @out %y, @in %a, @in %m Neg @out %z, @in %y } dealloc %z"));
  EXPECT_FALSE(
      overwrites("%z = alloc f32[2,3] fused @out %y, @out %z, @in %a { %b = local f32[2,3] Exp @out %b, @in %a "
                 "%m = local f32[2,1] Reduce @out %m, @in %b {axes = [1]} Sub @out %y, @in %a, @in %m "
                 "Mul @out %z, @in %y, @in %b } dealloc %z"));
  // The last instruction does not wait for the sum, but the one that reads a does.
  EXPECT_FALSE(
      overwrites("%z = alloc f32[2,3] fused @out %z, @out %y, @in %x, @in %a { %m = local f32[2,1] Reduce @out "
                 "%m, @in %x {axes = [1]} Sub @out %z, @in %a, @in %m Neg @out %y, @in %x } dealloc %z",
                 1));
  // An anchor reads its operand anywhere; what is fused with it does not.
  constexpr std::string_view kEpilogue =
      "%b = alloc f32[2,3] copy @out %b, @in %x fused @out %y, @in %a, @in %square, @in %b { %c = local f32[2,3] "
      "MatMul @out %c, @in %a, @in %square Add @out %y, @in %c, @in %b } dealloc %b dealloc %a";
  const Program program = parsed("%a = alloc f32[2,3] copy @out %a, @in %x " + std::string(kEpilogue));
  const Instr& fused = program.instrs[4];
  ASSERT_EQ(fused.kind, Instr::Kind::Fused);
  EXPECT_FALSE(mayOverwrite(program, fused, 0));
  EXPECT_TRUE(mayOverwrite(program, fused, 2));
}

std::vector<Tensor> run(Program program, const std::vector<Tensor>& inputs) {
  const Status placed = runMemoryPasses(program);
  EXPECT_TRUE(placed.ok());
  EXPECT_TRUE(verify(program).ok()) << verify(program).error().text() << print(program);
  InterpreterOptions options;
  options.poison = true;
  auto executable = InterpreterExecutable::create(std::move(program), options);
  EXPECT_TRUE(executable.ok()) << executable.error().text();
  auto results = executable->run(inputs);
  EXPECT_TRUE(results.ok()) << results.error().text();
  return *std::move(results);
}

TEST(Fused, RunsInTheInterpreterAndInPlace) {
  const std::vector<Tensor> inputs = {Tensor::fromDoubles(Type(ElemKind::Float32, Shape{2, 3}), {1, -2, 3, -4, 5, -6}),
                                      Tensor(Type(ElemKind::Float32, Shape{2, 1})),
                                      Tensor::fromDoubles(Type(ElemKind::Bool, Shape{}), {1}),
                                      Tensor(Type(ElemKind::Float32, Shape{3, 3}))};
  Program program = parsed(
      "%a = alloc f32[2,3] Neg @out %a, @in %x %b = alloc f32[2,3] fused @out %b, @in %a, @in %w { %c = local f32[2,3] "
      "Relu @out %c, @in %a Mul @out %b, @in %c, @in %w } %d = alloc f32[2,3] Neg @out %d, @in %b "
      "copy @out %y, @in %d dealloc %a dealloc %b dealloc %d");
  ASSERT_TRUE(verify(program).ok()) << verify(program).error().text();
  EXPECT_EQ(run(program, inputs)[0].doubles(), (std::vector<double>{-0.0, -4, -0.0, -4, -0.0, -18}));
  ASSERT_TRUE(runMemoryPasses(program).ok());
  EXPECT_THAT(print(program), HasSubstr("fused @inout %y, @in %w"));
}

}  // namespace
}  // namespace aglow
