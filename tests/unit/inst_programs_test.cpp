// Several programs over what they share: text, verifier, drawing.
#include <gmock/gmock.h>

#include "inst/dot.h"
#include "inst/text.h"
#include "inst/verifier.h"

namespace aglow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kCounter = R"(declare {
  %count = state f32[2] = [1, 2]
  %step = placeholder f32[2]
  %total = placeholder f32[2]
  %zero = constant f32[2] = [0, 0]
}
program @add(@in %step, @out %total) arena 64 {
  %sum = alloc f32[2] at 0
  Add @out %sum, @in %count, @in %step
  copy @out %count, @in %sum
  copy @out %total, @in %sum
  dealloc %sum
}
program @reset() arena 0 {
  copy @out %count, @in %zero
}
)";

std::vector<Program> parsed(std::string_view text) {
  auto programs = parsePrograms(text);
  EXPECT_TRUE(programs.ok()) << programs.error().text();
  return programs.ok() ? *std::move(programs) : std::vector<Program>{};
}

std::vector<std::string> declaredBy(const Program& program) {
  std::vector<std::string> names;
  for (const Region& region : program.regions)
    if (region.declared()) names.push_back(region.name);
  return names;
}

TEST(InstPrograms, PrintWhatTheyShareOnce) {
  const std::vector<Program> programs = parsed(kCounter);
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_TRUE(verify(programs).ok()) << verify(programs).error().text();
  EXPECT_EQ(print(programs), kCounter);
  EXPECT_EQ(parsed(print(programs)), programs);
  // Each holds what it touches, in the order of the declarations.
  EXPECT_THAT(declaredBy(programs[0]), ElementsAre("count", "step", "total"));
  EXPECT_THAT(declaredBy(programs[1]), ElementsAre("count", "zero"));
  EXPECT_EQ(programs[0].inputs().size(), 1u);
  EXPECT_EQ(programs[1].outputs().size(), 0u);
}

TEST(InstPrograms, LinesAreThoseOfTheText) {
  std::vector<int> lines;
  const std::string text = print(parsed(kCounter), nullptr, &lines);
  EXPECT_THAT(lines, ElementsAre(8, 9, 10, 11, 12, 15));
}

TEST(InstPrograms, APlaceholderIsReadHereAndWrittenThere) {
  const std::vector<Program> programs = parsed(R"(declare { %a = placeholder f32[2] %b = placeholder f32[2] }
    program @there(@in %a, @out %b) { copy @out %b, @in %a }
    program @back(@out %a, @in %b) { copy @out %a, @in %b })");
  EXPECT_TRUE(verify(programs).ok());
  EXPECT_EQ(programs[0][programs[0].inputs()[0]].name, "a");
  EXPECT_EQ(programs[1][programs[1].inputs()[0]].name, "b");
  EXPECT_EQ(parsed(print(programs)), programs);
}

// The order of a signature is that of the inputs, whatever the declarations say.
TEST(InstPrograms, SignaturesHaveTheirOwnOrder) {
  const std::vector<Program> programs = parsed(R"(declare { %a = placeholder f32[] %b = placeholder f32[] }
    program @f(@in %b, @inout %a) { Add @inout %a, @in %a, @in %b })");
  ASSERT_EQ(programs.size(), 1u);
  EXPECT_THAT(declaredBy(programs[0]), ElementsAre("b", "a"));
  EXPECT_EQ(parsed(print(programs)), programs);
}

TEST(InstPrograms, OwnNamesHideDeclaredOnes) {
  const std::vector<Program> programs = parsed(R"(declare { %w = constant f32[2] = [1, 2] %y = placeholder f32[2] }
    program @f(@out %y) { copy @out %y, @in %w }
    program @g(@out %y) { %w = alloc f32[2] Splat @out %w {shape = [2]} copy @out %y, @in %w dealloc %w })");
  EXPECT_TRUE(verify(programs).ok()) << verify(programs).error().text();
  EXPECT_THAT(declaredBy(programs[1]), ElementsAre("y"));
  EXPECT_EQ(parsed(print(programs)), programs);
}

TEST(InstPrograms, DeclarationsKeepEveryProgramsOrder) {
  const std::vector<Program> programs = parsed(R"(declare { %a = constant f32[] = [1] %b = constant f32[] = [2]
      %c = constant f32[] = [3] %y = placeholder f32[] }
    program @f(@out %y) { Add @out %y, @in %a, @in %c }
    program @g(@out %y) { Add @out %y, @in %a, @in %b }
    program @h(@out %y) { Add @out %y, @in %b, @in %b })");
  std::vector<std::string> names;
  for (const Region* region : sharedRegions(programs)) names.push_back(region->name);
  EXPECT_THAT(names, ElementsAre("a", "c", "b", "y"));
  EXPECT_EQ(parsed(print(programs)), programs);
}

TEST(InstPrograms, FaultsOfTheTextHaveAPlace) {
  const auto fault = [](std::string_view text) { return parsePrograms(text).error().text(); };
  constexpr const char* kTwice = "declare { }\nprogram @f() { }\nprogram @f() { }";
  EXPECT_THAT(fault(kTwice), AllOf(HasSubstr("3:9"), HasSubstr("defined twice")));
  EXPECT_THAT(fault("declare { }\nprogram @f(@in %x) { }"), AllOf(HasSubstr("2:16"), HasSubstr("no placeholder")));
  EXPECT_THAT(fault("declare { %x = splat f32[] = 1 }\nprogram @f(@in %x) { }"), HasSubstr("no placeholder"));
  EXPECT_THAT(fault("declare { %x = placeholder f32[] }\nprogram @f(@in %x, @in %x) { }"), HasSubstr("named twice"));
  EXPECT_THAT(fault("declare { %x = placeholder f32[] }\nprogram @f() { Neg @inout %x, @in %x }"),
              HasSubstr("no region"));
  EXPECT_THAT(fault("declare { }"), HasSubstr("expected 'program'"));
  EXPECT_THAT(fault("declare { %x = state f32[2] }\nprogram @f() { }"), HasSubstr("1:29"));
  EXPECT_FALSE(parseProgram(kCounter).ok());
}

TEST(InstPrograms, WhatIsSharedIsTheSame) {
  std::vector<Program> programs = parsed(kCounter);
  for (Region& region : programs[1].regions)
    if (auto* state = region.as<StateInit>()) state->initial = Tensor(region.type);
  const Status differs = verify(programs);
  ASSERT_FALSE(differs.ok());
  EXPECT_THAT(differs.error().text(), AllOf(HasSubstr("program 'reset'"), HasSubstr("'count'")));
  programs = parsed(kCounter);
  programs[1].name = "add";
  EXPECT_THAT(verify(programs).error().text(), HasSubstr("two programs are named 'add'"));
}

TEST(InstPrograms, StateHasAnInitialValueOfItsType) {
  std::vector<Program> programs = parsed(kCounter);
  for (Region& region : programs[1].regions)
    if (auto* state = region.as<StateInit>()) state->initial = Tensor(Type(ElemKind::Float32, Shape{3}));
  EXPECT_THAT(verify(programs[1]).error().text(), HasSubstr("expected an initial value of f32[2]"));
}

TEST(InstPrograms, AreDrawnInFramesAroundWhatTheyShare) {
  const std::string drawing = drawDot(parsed(kCounter));
  for (const char* part : {"label=\"add\"", "label=\"reset\"", "s0 [shape=box, fillcolor=\"#f6c98f\"", "p0i2 -> s0",
                           "s0 -> p0i1", "p1i0 -> s0"})
    EXPECT_THAT(drawing, HasSubstr(part));
}

}  // namespace
}  // namespace aglow
