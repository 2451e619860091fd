// Instructions that run part by part: their text, what the verifier asks of them, and lifetimes around them.
#include "inst/chain.h"

#include <gmock/gmock.h>

#include "inst/lifetimes.h"
#include "small_programs.h"

namespace aglow {
namespace {

using ::testing::HasSubstr;

Program parsed(std::string_view body) { return testing_support::parsedProgram("f32[2,3,4]", body); }
using testing_support::bodyText;
std::string fault(std::string_view body) { return testing_support::faultOf(parsed(body)); }

// Two instructions, the second chained to the first, each with the end of its plan.
std::string pair(std::string_view first, std::string_view second) {
  return "  Neg @out %y, @in %x by loops " + std::string(first) + "\n  chained Abs @out %z, @in %y by loops " +
         std::string(second) + "\n";
}

TEST(Chain, PrintsAndParses) {
  const std::string body = pair("units 6 cut 0 parts [2, 4] outer [3, 0]", "cut 2 parts [2, 4] outer [3, 3]");
  const Program program = parsed(body);
  EXPECT_EQ(bodyText(program), body);
  EXPECT_TRUE(program.instrs[1].chained);
  EXPECT_EQ(program.instrs[1].plan->cut, (Cut{.axis = 2, .images = 2, .parts = 4, .outer = {3, 3}}));
  EXPECT_EQ(chainEnd(program.instrs, 0), 2u);
  EXPECT_EQ(groupEnd(program.instrs, 0), 2u);
  EXPECT_EQ(besideEnd(program.instrs, 0), 1u);
  Program alone = program;
  forgetBeside(alone);
  EXPECT_FALSE(alone == program);
  EXPECT_EQ(groupEnd(alone.instrs, 0), 1u);
}

TEST(Chain, PartsTouchTheirOwnBytes) {
  EXPECT_EQ(fault(pair("cut 0 parts [1, 4] outer [6, 0]", "cut 0 parts [1, 4] outer [6, 6]")), "none");
  // What was there before the chain may be read as a whole.
  EXPECT_EQ(fault(pair("cut 0 parts [2, 3] outer [1, 0]", "cut 0 parts [2, 3] outer [2, 1]")), "none");
  const std::string expected = "it is chained to instruction 0, and a part of one touches what another part of the";
  EXPECT_THAT(fault(pair("cut 0 parts [1, 4] outer [6, 6]", "cut 0 parts [1, 4] outer [6, 0]")), HasSubstr(expected));
  EXPECT_THAT(fault(pair("cut 0 parts [1, 4] outer [6, 6]", "cut 0 parts [1, 4] outer [6, 2]")), HasSubstr(expected));
  EXPECT_THAT(fault(pair("cut 0 parts [1, 4] outer [6, 6]", "cut 0 parts [1, 2] outer [6, 6]")), HasSubstr(expected));
  // The second would overwrite what other parts of the first read.
  EXPECT_THAT(fault("%a = alloc f32[2,3,4]\nAbs @out %a, @in %x\nNeg @out %y, @in %a by loops cut 0 parts [1, 4] outer "
                    "[6, 0]\nchained Neg @inout %a, @in %a by loops cut 0 parts [1, 4] outer [6, 6]\n"
                    "copy @out %z, @in %a\ndealloc %a\n"),
              HasSubstr("it is chained to instruction 2"));
  // A view of some of the bytes is cut into others.
  EXPECT_THAT(fault("%v = tensorview %y at 0 : f32[12]\n%w = tensorview %z at 0 : f32[12]\nNeg @out %z, @in %x\n"
                    "Neg @out %y, @in %x by loops cut 0 parts [1, 4] outer [1, 1]\n"
                    "chained Abs @out %w, @in %v by loops cut 0 parts [1, 4] outer [1, 1]\n"),
              HasSubstr("it is chained to instruction 3"));
}

TEST(Chain, AllMembersAreCutEvenly) {
  const std::string good = "cut 0 parts [1, 4] outer [6, 6]";
  EXPECT_THAT(fault(pair(good, "units 4")), HasSubstr("whose plan has a cut"));
  EXPECT_THAT(fault(pair("units 4", good)), HasSubstr("whose plan has a cut"));
  EXPECT_THAT(fault(pair(good, "cut 0 parts [1, 5] outer [6, 6]")),
              HasSubstr("96 bytes of 'z' do not fall into 1 by 6 by 5 even parts"));
  EXPECT_THAT(fault(pair(good, "cut 0 parts [1, 4] outer [0, 6]")), HasSubstr("'z' is written, but not cut"));
  EXPECT_THAT(fault(pair(good, "cut 0 parts [1, 4] outer [6]")), HasSubstr("the cut is one of 1 operands, found 2"));
  EXPECT_THAT(fault(pair(good, "cut 0 parts [0, 4] outer [6, 6]")), HasSubstr("a cut into 0 by 4 parts"));
  EXPECT_THAT(fault(pair(good, "cut 0 parts [1099511627776, 16777216] outer [6, 6]")), HasSubstr("a cut into"));
}

TEST(Chain, NothingStandsBetweenMembers) {
  const std::string cut = " by loops cut 0 parts [1, 4] outer [6, 6]\n";
  const std::string expected = "there is no instruction directly before it that it could be chained to";
  EXPECT_THAT(fault("chained Neg @out %y, @in %x" + cut + "Neg @out %z, @in %x\n"), HasSubstr(expected));
  EXPECT_THAT(
      fault("Neg @out %y, @in %x" + cut + "%v = tensorview %y at 0 : f32[2,3,4]\nchained Abs @out %z, @in %v" + cut),
      HasSubstr(expected));
  EXPECT_THAT(fault("Neg @out %y, @in %x if %p" + cut + "chained Abs @out %z, @in %y" + cut),
              HasSubstr("without a predicate"));
  EXPECT_THAT(fault("copy @out %y, @in %x\nchained Abs @out %z, @in %y" + cut), HasSubstr("only an operator"));
}

TEST(Chain, BuffersLiveAroundAllMembers) {
  // One after the other, %b could begin where %a ends.
  const std::string cut = " by loops cut 0 parts [1, 4] outer [6, 6]\n";
  Program program = parsed("%a = alloc f32[2,3,4]\n%b = alloc f32[2,3,4]\nAbs @out %a, @in %x\nNeg @out %y, @in %a" +
                           cut + "chained Abs @out %b, @in %y" + cut + "Neg @out %z, @in %b\ndealloc %a\ndealloc %b\n");
  markLifetimes(program);
  EXPECT_EQ(bodyText(program),
            "  %a = alloc f32[2,3,4]\n  Abs @out %a, @in %x\n  %b = alloc f32[2,3,4]\n  Neg @out %y, @in %a" + cut +
                "  chained Abs @out %b, @in %y" + cut + "  dealloc %a\n  Neg @out %z, @in %b\n  dealloc %b\n");
  const Status valid = verify(program);
  EXPECT_TRUE(valid.ok()) << valid.error().text();
}

}  // namespace
}  // namespace aglow
