// Plans on instructions: text, rules, equality.
#include "inst/plan.h"

#include <gmock/gmock.h>

#include "inst/dot.h"
#include "inst/text.h"
#include "inst/verifier.h"

namespace aglow {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kDeclared =
    "declare {\n  %a = placeholder f32[4,8]\n  %b = placeholder f32[8,6]\n  %y = placeholder f32[4,6]\n}\n";

// A product, and whatever its line ends with.
std::string product(std::string_view ending, std::string_view arena = "") {
  return std::string(kDeclared) + "program @f(@in %a, @in %b, @out %y) " + std::string(arena) +
         "{\n  %s = alloc u8[64]" + (arena.empty() ? "" : " at 0") + "\n  MatMul @out %y, @in %a, @in %b" +
         std::string(ending) + "\n  dealloc %s\n}\n";
}

std::string fault(const std::string& text) {
  const Result<Program> program = parseProgram(text);
  if (!program.ok()) return program.error().text();
  const Status status = verify(*program);
  return status.ok() ? "none" : status.error().text();
}

TEST(Plan, PrintsWhatItParsed) {
  const std::string text = product(
      R"( from "node" by tiles units 8 scratch 4096 epilogue [1, 1, 4, 6] not matvec "4 \"rows\"" not general "why")");
  const Result<Program> program = parseProgram(text);
  ASSERT_TRUE(program.ok()) << program.error().text();
  EXPECT_EQ(print(*program), text);
  const Plan expected{.kernel = "tiles",
                      .units = 8,
                      .scratchBytes = 4096,
                      .epilogue = {{1, 1, 4, 6}},
                      .refused = {{"matvec", "4 \"rows\""}, {"general", "why"}}};
  EXPECT_EQ(program->instrs[1].plan, expected);
  EXPECT_TRUE(verify(*program).ok()) << verify(*program).error().text();
  EXPECT_THAT(drawDot(*program), HasSubstr("MatMul\\nby tiles"));
}

TEST(Plan, LeavesOutWhatIsUsual) {
  const std::string text = product(" by loops");
  const Result<Program> program = parseProgram(text);
  ASSERT_TRUE(program.ok()) << program.error().text();
  EXPECT_EQ(print(*program), text);
  EXPECT_EQ(program->instrs[1].plan, Plan{.kernel = Plan::kLoops});
  EXPECT_TRUE(program->instrs[1].plan->isLoops());
}

TEST(Plan, StandsOnFusedInstructionsAsAWhole) {
  const std::string body =
      " {\n    %t = local f32[4,6]\n    MatMul @out %t, @in %a, @in %b\n    Relu @out %y, @in %t\n  }\n";
  const std::string head =
      std::string(kDeclared) + "program @f(@in %a, @in %b, @out %y) {\n  fused @out %y, @in %a, @in %b";
  const std::string text = head + " from \"t+y\" by tiles units 0 epilogue [1, 1, 4, 6]" + body + "}\n";
  const Result<Program> program = parseProgram(text);
  ASSERT_TRUE(program.ok()) << program.error().text();
  EXPECT_EQ(print(*program), text);
  EXPECT_EQ(fault(text), "none");
  EXPECT_THAT(fault(head + " {\n %t = local f32[4,6] MatMul @out %t, @in %a, @in %b by tiles Relu @out %y, @in %t } }"),
              HasSubstr("the plan belongs to the instruction as a whole"));
}

TEST(Plan, MakesInstructionsDiffer) {
  const auto parsed = [](std::string_view ending) { return *parseProgram(product(ending)); };
  const Program planned = parsed(" by tiles units 2");
  EXPECT_TRUE(planned == parsed(" by tiles units 2"));
  for (const char* other : {"", " by tiles", " by general units 2", " by tiles units 2 scratch 8",
                            " by tiles units 2 epilogue [1, 1, 4, 6]", " by tiles units 2 not general \"why\""})
    EXPECT_FALSE(planned == parsed(other)) << other;
}

TEST(Plan, NamesTheFaultInTheText) {
  const std::pair<const char*, const char*> cases[] = {
      {" by 3", "8:37: expected the name of a kernel, found '3'"},
      {" by \"tiles\"", "8:37: expected the name of a kernel, found '\"tiles\"'"},
      {" by tiles units -1", "8:49: -1 cannot be a number of units"},
      {" by tiles units many", "8:49: expected a number of units, found 'many'"},
      {" by tiles units 99999999999999999999", "8:49: expected a number of units"},
      {" by tiles scratch -8", "8:51: -8 cannot be the bytes of working memory"},
      {" by tiles scratch 9223372036854775807", "cannot be the bytes of working memory"},
      {" by tiles epilogue [1, 2, 3]", "8:60: expected ',', found ']'"},
      {" by tiles epilogue [1, 1, -4, 6]", "-4 cannot be an extent"},
      {" by tiles not general", "9:3: expected the reason in quotes, found 'dealloc'"},
      {" by tiles by tiles", "expected an operator, found 'by'"},
  };
  for (const auto& [ending, message] : cases) {
    const Result<Program> program = parseProgram(product(ending));
    ASSERT_FALSE(program.ok()) << ending;
    EXPECT_EQ(program.error().code, Code::BadText);
    EXPECT_THAT(program.error().text(), HasSubstr(message)) << ending;
  }
}

TEST(Plan, RefusesWhatIsWrong) {
  const std::pair<std::string, const char*> cases[] = {
      {product(" by tiles epilogue [1, 1, 4, 7]"), "the epilogue's view [1, 1, 4, 7] does not have the 24 elements"},
      {product(" by tiles epilogue [1073741824, 1073741824, 1073741824, 24]"), "does not have the 24 elements"},
      {product(" by loops epilogue [1, 1, 4, 6]"), "loops have no epilogue"},
      {product(" by tiles not general \"\""), "general was refused without a reason"},
      {product(", @scratch %s by tiles scratch 32"), "64 bytes of working memory, its plan says 32"},
      {product(", @scratch %s by tiles"), "64 bytes of working memory, its plan says 0"},
      {product(", @scratch %s, @scratch %s by tiles scratch 64"), "overlaps"},
      {product(" by tiles scratch 64", "arena 64 "), "0 bytes of working memory, its plan says 64"},
      {std::string(kDeclared) + "program @f(@in %a, @in %b, @out %y) { %v = tensorview %a at 0 : f32[4,6] "
                                "copy @out %y, @in %v by tiles }",
       "only instructions that compute have a plan"},
  };
  for (const auto& [text, message] : cases) EXPECT_THAT(fault(text), HasSubstr(message)) << text;
  // Working memory may come later, until the program is placed.
  for (const std::string& text : {product(" by tiles scratch 64"), product(", @scratch %s by tiles scratch 64"),
                                  product(", @scratch %s by tiles scratch 64", "arena 64 "), product(", @scratch %s")})
    EXPECT_EQ(fault(text), "none") << text;
}

TEST(Plan, ChecksWhatNoTextCanWrite) {
  const auto faultOf = [](const Plan& plan) {
    Program program = *parseProgram(product(""));
    program.instrs[1].plan = plan;
    const Status status = verify(program);
    return status.ok() ? "none" : status.error().text();
  };
  EXPECT_EQ(faultOf({.kernel = "a_row.2"}), "none");
  for (const char* name : {"", "two words", "9", "a\"b"})
    EXPECT_THAT(faultOf({.kernel = name}), HasSubstr("is not the name of a kernel")) << name;
  EXPECT_THAT(faultOf({.kernel = "tiles", .refused = {{"", "why"}}}), HasSubstr("is not the name of a kernel"));
  EXPECT_THAT(faultOf({.kernel = "tiles", .units = -1}), HasSubstr("-1 units of work"));
  EXPECT_THAT(faultOf({.kernel = "tiles", .scratchBytes = -1}), HasSubstr("-1 bytes of working memory"));
  EXPECT_THAT(faultOf({.kernel = "tiles", .epilogue = {{-1, -1, 4, 6}}}), HasSubstr("an extent of -1"));
}

}  // namespace
}  // namespace aglow
