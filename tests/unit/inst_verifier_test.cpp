#include "inst/verifier.h"

#include <gmock/gmock.h>

#include "inst/text.h"

namespace aglow {
namespace {

using ::testing::HasSubstr;

Program parsed(std::string_view body, std::string_view arena = "") {
  const std::string text =
      "declare {\n  %x = placeholder f32[4]\n  %y = placeholder f32[4]\n"
      "  %w = constant f32[4] = [1, 2, 3, 4]\n  %p = placeholder bool[]\n}\nprogram @f(@in %x, @out %y, @in %p) " +
      std::string(arena) + "{\n" + std::string(body) + "\n}\n";
  auto program = parseProgram(text);
  EXPECT_TRUE(program.ok()) << program.error().text();
  return *std::move(program);
}

std::string fault(std::string_view body, std::string_view arena = "") {
  const Status status = verify(parsed(body, arena));
  if (status.ok()) return "none";
  EXPECT_EQ(status.error().code, Code::BadVerify);
  return status.error().text();
}

TEST(Verifier, AcceptsWhatIsRight) {
  EXPECT_EQ(fault("copy @out %y, @in %x"), "none");
  EXPECT_EQ(fault("%a = alloc f32[4] Add @out %a, @in %x, @in %w Relu @inout %a, @in %a if %p copy @out %y, @in %a "
                  "dealloc %a"),
            "none");
  // Halves written one after the other make a whole.
  EXPECT_EQ(fault("%u = tensorview %y at 8 : f32[2] %v = tensorview %y at 0 : f32[2] %s = tensorview %x at 0 : f32[2]"
                  "copy @out %u, @in %s copy @out %v, @in %s"),
            "none");
  EXPECT_EQ(fault("copy.start @out %y, @in %x token 1 copy.wait @out %y, @in %x token 1"), "none");
}

TEST(Verifier, NamesTheInstruction) {
  EXPECT_THAT(fault("%a = alloc f32[4] Relu @out %y, @in %a dealloc %a"),
              HasSubstr("instruction 1: Relu @out %y, @in %a: 'a' is read before it is written"));
}

struct Case {
  std::string_view body;
  std::string_view message;
};

TEST(Verifier, RefusesWhatIsWrong) {
  const Case cases[] = {
      {"", "output 'y' is not written"},
      {"%a = alloc f32[4] Relu @out %a, @in %x Neg @out %y, @in %x, @scratch %a copy @out %y, @in %a dealloc %a",
       "'a' is read before it is written"},
      {"%u = tensorview %y at 8 : f32[2] %s = tensorview %x at 0 : f32[2] copy @out %u, @in %s",
       "output 'y' is not written"},
      {"Relu @out %x, @in %w", "'x' is written, but may only be read"},
      {"Relu @out %w, @in %x", "'w' is written, but may only be read"},
      {"%v = tensorview %w at 0 : f32[4] Relu @out %v, @in %x", "'w' is written"},
      {"Relu @in %y, @in %x", "a result is @out or @inout"},
      {"Relu @out %y, @out %x", "after the results are @in"},
      {"Relu @out %y", "needs its operand"},
      {"Add @out %y, @in %x, @in %x, @in %x", "takes at most"},
      {"%a = alloc f32[2] Relu @out %a, @in %x dealloc %a", "result 0 is f32[2], expected f32[4]"},
      {"%a = alloc i32[4] Add @out %y, @in %x, @in %a dealloc %a", "one element kind"},
      {"Reshape @out %y, @in %x {shape = [4]}", "is not an instruction"},
      {"copy @out %y, @in %x copy @out %y, @in %y", "overlaps"},
      {"%s = tensorview %x at 0 : f32[2] copy @out %y, @in %s", "a copy from f32[2] to f32[4]"},
      {"%a = alloc f32[4] copy @out %y, @in %x", "'a' has no dealloc"},
      {"%a = alloc f32[4] dealloc %a dealloc %a", "after its dealloc"},
      {"%a = alloc f32[4] copy @out %a, @in %x dealloc %a copy @out %y, @in %a", "after its dealloc"},
      {"%a = alloc f32[4] %v = tensorview %a at 0 : f32[2] dealloc %a %z = tensorview %x at 0 : f32[2] copy @out %v, "
       "@in %z",
       "'a' is used after its dealloc"},
      {"dealloc %x", "not allocated memory"},
      {"Relu @inout %y, @in %x", "no operand shares its memory"},
      {"copy @out %y, @in %x Relu @out %y, @in %y", "overlaps"},
      // Not elementwise: a product cannot be written over its operand.
      {"%a = alloc f32[2,2] %v = tensorview %x at 0 : f32[2,2] copy @out %a, @in %v MatMul @inout %a, @in %a, @in %v "
       "dealloc %a",
       "overlaps"},
      // What is scattered cannot be what it is scattered into.
      {"%i = alloc i32[4] Cast @out %i, @in %x {to = i32} copy @out %y, @in %x Scatter @inout %y, @in %y, @in %i, @in "
       "%y dealloc %i",
       "overlaps"},
      {"Relu @out %y, @in %x if %w", "the predicate is f32[4]"},
      {"copy.start @out %y, @in %x token 1", "never waited for"},
      {"copy.wait @out %y, @in %x token 1", "no copy with token 1"},
      {"copy.start @out %y, @in %x token 1 copy.wait @out %y, @in %w token 1", "other operands"},
      {"copy.start @out %y, @in %x token 1 copy.wait @in %y, @in %x token 1", "other operands"},
      {"copy.start @out %y, @in %x token 1 copy.wait @out %y, @in %x token 1 if %w", "the predicate is f32[4]"},
      {"%q = alloc bool[] copy.start @out %y, @in %x token 1 copy.wait @out %y, @in %x token 1 if %q dealloc %q",
       "'q' is read before it is written"},
      {"copy.start @out %y, @in %x token 1 Relu @out %y, @in %x", "under way"},
      {"%a = alloc f32[4] copy.start @out %a, @in %x token 1 Relu @out %y, @in %a", "under way"},
      {"%a = alloc f32[4] copy.start @out %a, @in %x token 1 dealloc %a", "under way"},
      {"%a = alloc f32[4] Relu @out %a, @in %x copy.start @out %y, @in %a token 1 Relu @inout %a, @in %a", "under way"},
      {"%s = tensorview %x at 2 : f32[1]", "offset 2 is not aligned"},
  };
  for (const Case& c : cases) EXPECT_THAT(fault(c.body), HasSubstr(c.message)) << c.body;
}

TEST(Verifier, ChecksThePlacement) {
  EXPECT_EQ(fault("%a = alloc f32[4] at 0 copy @out %a, @in %x copy @out %y, @in %a dealloc %a", "arena 64 "), "none");
  EXPECT_THAT(fault("%a = alloc f32[4] at 64 copy @out %a, @in %x copy @out %y, @in %a dealloc %a", "arena 64 "),
              HasSubstr("do not lie inside the arena"));
  EXPECT_THAT(fault("%a = alloc f32[4] at 8 copy @out %a, @in %x copy @out %y, @in %a dealloc %a", "arena 64 "),
              HasSubstr("offset 8 is not aligned"));
  EXPECT_THAT(fault("%a = alloc f32[4] copy @out %a, @in %x copy @out %y, @in %a dealloc %a", "arena 64 "),
              HasSubstr("is not aligned"));
  EXPECT_THAT(fault("%a = alloc f32[4] at 0 copy @out %a, @in %x copy @out %y, @in %a dealloc %a"),
              HasSubstr("not placed"));
  const std::string_view pair =
      "%a = alloc f32[40] at 64 %b = alloc f32[20] at {} dealloc %a dealloc %b copy @out %y, @in %x";
  for (const auto& [offset, message] : {std::pair("0", "overlaps 'a' at 64"), {"128", "overlaps 'a' at 64"}}) {
    std::string body(pair);
    body.replace(body.find("{}"), 2, offset);
    EXPECT_THAT(fault(body, "arena 1024 "), HasSubstr(message));
  }
  EXPECT_EQ(fault("%a = alloc f32[40] at 64 dealloc %a %b = alloc f32[20] at 64 dealloc %b copy @out %y, @in %x",
                  "arena 1024 "),
            "none");
}

TEST(Verifier, ChecksRegionsThatNoTextCanWrite) {
  Program program = parsed("copy @out %y, @in %x");
  program.add({.name = "x", .type = Type(ElemKind::Float32, {}), .source = SplatInit{}});
  EXPECT_THAT(verify(program).error().text(), HasSubstr("two regions are named 'x'"));
  program = parsed("copy @out %y, @in %x");
  program.add({.name = "a", .type = Type(ElemKind::Float32, {}), .source = Allocated{}});
  EXPECT_THAT(verify(program).error().text(), HasSubstr("'a' is never allocated"));
  program = parsed("copy @out %y, @in %x");
  program.add({.name = "v", .type = Type(ElemKind::Float32, Shape{5}), .source = ViewOf{0, 0}});
  EXPECT_THAT(verify(program).error().text(), HasSubstr("do not lie inside"));
}

}  // namespace
}  // namespace aglow
