// Instructions that may run at the same time: their text, what the verifier asks of them, and lifetimes around them.
#include "inst/beside.h"

#include <gmock/gmock.h>

#include "inst/lifetimes.h"
#include "small_programs.h"

namespace aglow {
namespace {

using ::testing::HasSubstr;

Program parsed(std::string_view body) { return testing_support::parsedProgram("f32[4]", body); }
using testing_support::bodyText;
std::string fault(std::string_view body) { return testing_support::faultOf(parsed(body)); }

TEST(Beside, PrintsAndParses) {
  const std::string body = "  Neg @out %y, @in %x from \"a\"\n  beside Abs @out %z, @in %x from \"b\"\n";
  const Program program = parsed(body);
  EXPECT_EQ(bodyText(program), body);
  EXPECT_TRUE(program.instrs[1].beside);
  EXPECT_EQ(besideEnd(program.instrs, 0), 2u);
  Program alone = program;
  forgetBeside(alone);
  EXPECT_FALSE(alone == program);
  EXPECT_EQ(besideEnd(alone.instrs, 0), 1u);
}

TEST(Beside, FusedInstructionsAndCopiesMayBeToo) {
  EXPECT_EQ(fault("copy @out %y, @in %x\nbeside fused @out %z, @in %x {\n%a = local f32[4]\nNeg @out %a, @in %x\n"
                  "Abs @out %z, @in %a\n}\n"),
            "none");
}

TEST(Beside, MembersAreIndependent) {
  EXPECT_EQ(fault("Neg @out %y, @in %x\nbeside Abs @out %z, @in %x\n"), "none");
  const std::string expected = "it runs beside instruction 0, and one writes what the other touches";
  EXPECT_THAT(fault("Neg @out %y, @in %x\nbeside Abs @out %z, @in %y\n"), HasSubstr(expected));
  EXPECT_THAT(fault("Neg @out %y, @in %x\nbeside Abs @out %y, @in %x\nNeg @out %z, @in %x\n"), HasSubstr(expected));
  // The second would overwrite what the first reads.
  EXPECT_THAT(fault("%a = alloc f32[4]\nAbs @out %a, @in %x\nNeg @out %y, @in %a\nbeside Neg @inout %a, @in %a\n"
                    "copy @out %z, @in %a\ndealloc %a\n"),
              HasSubstr("it runs beside instruction 2"));
  // Halves of one buffer are different bytes.
  EXPECT_EQ(
      fault("%u = tensorview %y at 8 : f32[2]\n%v = tensorview %y at 0 : f32[2]\n%s = tensorview %x at 0 : f32[2]\n"
            "copy @out %u, @in %s\nbeside copy @out %v, @in %s\nNeg @out %z, @in %x\n"),
      "none");
}

TEST(Beside, NothingStandsBetweenMembers) {
  const std::string expected = "there is no instruction directly before it that it could run beside";
  EXPECT_THAT(fault("beside Neg @out %y, @in %x\nNeg @out %z, @in %x\n"), HasSubstr(expected));
  EXPECT_THAT(fault("Neg @out %y, @in %x\n%v = tensorview %x at 0 : f32[4]\nbeside Abs @out %z, @in %v\n"),
              HasSubstr(expected));
  EXPECT_THAT(fault("Neg @out %y, @in %x if %p\nbeside Abs @out %z, @in %x\n"), HasSubstr(expected));
  EXPECT_THAT(fault("Neg @out %y, @in %x\nbeside Abs @out %z, @in %x if %p\n"), HasSubstr("without a predicate"));
}

TEST(Beside, BuffersLiveAroundAllMembers) {
  // One after the other, %b could begin after the end of %a.
  Program program = parsed(
      "%a = alloc f32[4]\n%b = alloc f32[4]\nAbs @out %a, @in %x\nNeg @out %y, @in %a\nbeside Abs @out %b, @in %x\n"
      "Neg @out %z, @in %b\ndealloc %a\ndealloc %b\n");
  markLifetimes(program);
  EXPECT_EQ(bodyText(program),
            "  %a = alloc f32[4]\n  Abs @out %a, @in %x\n  %b = alloc f32[4]\n  Neg @out %y, @in %a\n"
            "  beside Abs @out %b, @in %x\n  dealloc %a\n  Neg @out %z, @in %b\n  dealloc %b\n");
  const Status valid = verify(program);
  EXPECT_TRUE(valid.ok()) << valid.error().text();
}

}  // namespace
}  // namespace aglow
