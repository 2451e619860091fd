// Each pass on small programs, as text before and after.
#include "memory/passes.h"

#include <gmock/gmock.h>

#include "inst/lifetimes.h"
#include "inst/text.h"
#include "inst/verifier.h"

namespace aglow {
namespace {

using Pass = Result<bool>(Program&);

constexpr std::string_view kDeclared =
    "declare {\n  %x = placeholder f32[4]\n  %y = placeholder f32[4]\n  %z = placeholder f32[4]\n"
    "  %state = placeholder f32[4]\n  %w = constant f32[4] = [1, 2, 3, 4]\n}\nprogram @f(@in %x, @out %y, @out %z, "
    "@inout %state) {\n";

// The instructions after a pass, one a line.
std::string after(Pass& pass, std::string_view body) {
  auto program = parseProgram(std::string(kDeclared) + std::string(body) + "}\n");
  EXPECT_TRUE(program.ok()) << program.error().text();
  const Status valid = verify(*program);
  EXPECT_TRUE(valid.ok()) << valid.error().text();
  // A pass that changes anything makes lifetimes tight; that alone does not count as a change.
  if (&pass != &tightenLifetimes) markLifetimes(*program);
  const Program before = *program;
  const auto changed = pass(*program);
  EXPECT_TRUE(changed.ok());
  const Status stillValid = verify(*program);
  EXPECT_TRUE(stillValid.ok()) << stillValid.error().text() << print(*program);
  EXPECT_EQ(*changed, !(before == *program)) << print(*program);
  const std::string text = print(*program);
  const size_t start = text.find("{\n", text.find("program")) + 2;
  return text.substr(start, text.size() - start - 2);
}

// The same without the instructions' origins.
std::string run(Pass& pass, std::string_view body) {
  std::string text = after(pass, body), out;
  for (size_t from = 0; from < text.size();) {
    const size_t end = text.find('\n', from);
    const std::string line = text.substr(from, end - from);
    out += line.substr(0, line.find(" from \"")) + "\n";
    from = end + 1;
  }
  return out;
}

// Outputs that a case leaves alone are written by something that no pass takes away.
constexpr std::string_view kWriteZ = "  Neg @out %z, @in %x\n";
constexpr std::string_view kWriteY = "  Neg @out %y, @in %x\n";
std::string withZ(std::string_view body) { return std::string(body) + std::string(kWriteZ); }

TEST(RemoveCopies, ComputesWhereTheCopyGoes) {
  EXPECT_EQ(run(removeCopies, withZ("  %a = alloc f32[4]\n  Add @out %a, @in %x, @in %w\n  copy @out %y, @in %a\n"
                                    "  dealloc %a\n")),
            withZ("  Add @out %y, @in %x, @in %w\n"));
}

TEST(RemoveCopies, ThroughViewsOfAllBytes) {
  EXPECT_EQ(run(removeCopies, withZ("  %a = alloc f32[2,2]\n  Splat @out %a {value = 1, shape = [2, 2]}\n"
                                    "  %v = tensorview %a at 0 : f32[4]\n  copy @out %y, @in %v\n  dealloc %a\n")),
            withZ("  %a = tensorview %y at 0 : f32[2,2]\n  Splat @out %a {value = 1, shape = [2, 2]}\n"));
}

TEST(RemoveCopies, LaterReadersReadTheCopy) {
  EXPECT_EQ(run(removeCopies,
                "  %a = alloc f32[4]\n  Add @out %a, @in %x, @in %w\n  copy @out %y, @in %a\n"
                "  Neg @out %z, @in %a\n  dealloc %a\n"),
            "  Add @out %y, @in %x, @in %w\n  Neg @out %z, @in %y\n");
}

TEST(RemoveCopies, OneOfTwoCopiesStays) {
  EXPECT_EQ(run(removeCopies,
                "  %a = alloc f32[4]\n  Add @out %a, @in %x, @in %w\n  copy @out %y, @in %a\n"
                "  copy @out %z, @in %a\n  dealloc %a\n"),
            "  Add @out %z, @in %x, @in %w\n  copy @out %y, @in %z\n");
}

TEST(RemoveCopies, ReadsTheSourceWhereItStays) {
  EXPECT_EQ(run(removeCopies, withZ("  %a = alloc f32[4]\n  copy @out %a, @in %w\n  Add @out %y, @in %x, @in %a\n"
                                    "  dealloc %a\n")),
            withZ("  Add @out %y, @in %x, @in %w\n"));
}

TEST(RemoveCopies, UpdatesStateInPlace) {
  EXPECT_EQ(run(removeCopies, withZ(std::string(kWriteY) + "  %a = alloc f32[4]\n  Add @out %a, @in %state, @in %w\n"
                                                           "  copy @out %state, @in %a\n  dealloc %a\n")),
            withZ(std::string(kWriteY) + "  Add @inout %state, @in %state, @in %w\n"));
}

TEST(RemoveCopies, KeepsWhatIsNeeded) {
  const std::string cases[] = {
      // Inputs and constants cannot become outputs.
      withZ("  copy @out %y, @in %x\n"),
      // The destination holds something else that is read in between.
      "  Neg @out %y, @in %x\n  %a = alloc f32[4]\n  Add @out %a, @in %x, @in %w\n  Neg @out %z, @in %y\n"
      "  copy @out %y, @in %a\n  dealloc %a\n",
      // The source changes after the copy.
      "  %a = alloc f32[4]\n  Add @out %a, @in %x, @in %w\n  copy @out %y, @in %a\n  Neg @inout %a, @in %a\n"
      "  Exp @out %z, @in %a\n  dealloc %a\n",
      // The copy changes while the source is still read.
      "  %a = alloc f32[4]\n  Add @out %a, @in %x, @in %w\n  copy @out %y, @in %a\n  Neg @inout %y, @in %y\n"
      "  Exp @out %z, @in %a\n  dealloc %a\n",
      // Only a part of the source is copied.
      withZ("  %a = alloc f32[8]\n  Splat @out %a {shape = [8]}\n  %v = tensorview %a at 16 : f32[4]\n"
            "  copy @out %y, @in %v\n  dealloc %a\n"),
      // What was in the state is read after the new value is there: a snapshot is needed.
      withZ("  %a = alloc f32[4]\n  copy @out %a, @in %state\n  copy @out %state, @in %x\n  Neg @out %y, @in %a\n"
            "  dealloc %a\n"),
      // A product may not be written over its operand.
      withZ(std::string(kWriteY) +
            "  %v = tensorview %state at 0 : f32[2,2]\n  %a = alloc f32[2,2]\n  MatMul @out %a, @in %v, @in %v\n"
            "  copy @out %v, @in %a\n  dealloc %a\n"),
  };
  for (const std::string& body : cases) {
    auto program = parseProgram(std::string(kDeclared) + body + "}\n");
    ASSERT_TRUE(program.ok()) << program.error().text() << body;
    size_t before = 0, left = 0;
    for (const Instr& instr : program->instrs) before += instr.kind == Instr::Kind::Copy ? 1 : 0;
    ASSERT_TRUE(verify(*program).ok()) << verify(*program).error().text();
    ASSERT_TRUE(removeCopies(*program).ok());
    for (const Instr& instr : program->instrs) left += instr.kind == Instr::Kind::Copy ? 1 : 0;
    EXPECT_EQ(left, before) << body << "became\n" << print(*program);
  }
}

TEST(RemoveCopies, LetsNothingRaiseThePeak) {
  // Reading a piece of the large buffer would keep all of it alive beside the other large one.
  const std::string body = withZ(
      "  %large = alloc f32[1024]\n  Splat @out %large {shape = [1024]}\n  %v = tensorview %large at 0 : f32[4]\n"
      "  %piece = alloc f32[4]\n  copy @out %piece, @in %v\n  dealloc %large\n  %other = alloc f32[1024]\n"
      "  Splat @out %other {shape = [1024]}\n  %u = tensorview %other at 0 : f32[4]\n"
      "  Add @out %y, @in %piece, @in %u\n  dealloc %piece\n  dealloc %other\n");
  EXPECT_THAT(run(removeCopies, body), ::testing::HasSubstr("copy @out %piece"));
}

TEST(Share, OverwritesAnOperandThatDies) {
  EXPECT_EQ(run(shareInPlace, withZ("  %a = alloc f32[4]\n  Add @out %a, @in %x, @in %w\n  %b = alloc f32[4]\n"
                                    "  Neg @out %b, @in %a\n  dealloc %a\n  Add @out %y, @in %x, @in %b\n"
                                    "  dealloc %b\n")),
            withZ("  Add @out %y, @in %x, @in %w\n  Neg @inout %y, @in %y\n  Add @inout %y, @in %x, @in %y\n"));
}

TEST(Share, LeavesOperandsThatAreNeeded) {
  const std::string bodies[] = {
      "  %a = alloc f32[4]\n  Add @out %a, @in %x, @in %w\n  Neg @out %y, @in %a\n  Cast @out %z, @in %a\n"
      "  dealloc %a\n",
      // Broadcast: the operand has another type, or the same bytes are also read in another shape.
      withZ("  %a = alloc f32[1]\n  Splat @out %a {shape = [1]}\n  Add @out %y, @in %x, @in %a\n  dealloc %a\n"),
      withZ("  %a = alloc f32[4]\n  Neg @out %a, @in %x\n  %v = tensorview %a at 0 : f32[1]\n"
            "  Add @out %y, @in %a, @in %v\n  dealloc %a\n"),
      // Matrix products read their operands more than once.
      withZ("  %a = alloc f32[2,2]\n  Splat @out %a {shape = [2, 2]}\n  %v = tensorview %y at 0 : f32[2,2]\n"
            "  MatMul @out %v, @in %a, @in %a\n  dealloc %a\n"),
  };
  for (const std::string& body : bodies)
    EXPECT_THAT(run(shareInPlace, body), ::testing::Not(::testing::HasSubstr("@inout"))) << body;
}

TEST(Moves, TurnsStretchesIntoCopies) {
  EXPECT_EQ(run(movesToCopies, withZ("  %a = alloc f32[4,4]\n  Splat @out %a {shape = [4, 4]}\n  %b = alloc f32[1,4]\n"
                                     "  Slice @out %b, @in %a {starts = [2, 0], sizes = [1, 4]}\n  dealloc %a\n"
                                     "  %c = alloc f32[4,1]\n  Transpose @out %c, @in %b {perm = [1, 0]}\n"
                                     "  dealloc %b\n  %v = tensorview %c at 0 : f32[2]\n"
                                     "  %t = tensorview %x at 8 : f32[2]\n"
                                     "  Concat @out %y, @in %v, @in %t\n  dealloc %c\n")),
            withZ("  %a = alloc f32[4,4]\n  Splat @out %a {shape = [4, 4]}\n  %b = alloc f32[1,4]\n"
                  "  %a.part0 = tensorview %a at 32 : f32[1,4]\n  copy @out %b, @in %a.part0\n  dealloc %a\n"
                  "  %c = alloc f32[4,1]\n  %b.part0 = tensorview %b at 0 : f32[4,1]\n  copy @out %c, @in %b.part0\n"
                  "  dealloc %b\n  %y.part0 = tensorview %y at 0 : f32[2]\n  %v = tensorview %c at 0 : f32[2]\n"
                  "  copy @out %y.part0, @in %v\n  dealloc %c\n  %y.part1 = tensorview %y at 8 : f32[2]\n"
                  "  %t = tensorview %x at 8 : f32[2]\n  copy @out %y.part1, @in %t\n"));
}

TEST(Moves, LeavesWhatIsScattered) {
  const std::string body = withZ(
      "  %a = alloc f32[4,4]\n  Splat @out %a {shape = [4, 4]}\n  %b = alloc f32[4,1]\n"
      "  Slice @out %b, @in %a {starts = [0, 1], sizes = [4, 1]}\n  %r = alloc f32[2,4]\n"
      "  Slice @out %r, @in %a {starts = [0, 0], sizes = [2, 4], steps = [2, 1]}\n  %t = alloc f32[4,4]\n"
      "  Transpose @out %t, @in %a {perm = [1, 0]}\n  dealloc %a\n  dealloc %t\n  %c = alloc f32[4,2]\n"
      "  Concat @out %c, @in %b, @in %b {axis = 1}\n  dealloc %b\n  dealloc %c\n  dealloc %r\n" +
      std::string(kWriteY));
  EXPECT_THAT(run(movesToCopies, body), ::testing::Not(::testing::HasSubstr("copy")));
}

TEST(Moves, WithCopiesRemovedPartsAreComputedInPlace) {
  const std::string text =
      "  %a = alloc f32[2]\n  Splat @out %a {value = 1, shape = [2]}\n  %b = alloc f32[2]\n"
      "  Splat @out %b {value = 2, shape = [2]}\n  Concat @out %y, @in %a, @in %b\n  dealloc %a\n  dealloc %b\n";
  auto program = parseProgram(std::string(kDeclared) + withZ(text) + "}\n");
  ASSERT_TRUE(program.ok());
  EXPECT_TRUE(*movesToCopies(*program));
  EXPECT_TRUE(*removeCopies(*program));
  EXPECT_TRUE(verify(*program).ok());
  for (const Instr& instr : program->instrs)
    EXPECT_TRUE(instr.kind == Instr::Kind::Compute || instr.kind == Instr::Kind::TensorView) << print(*program);
}

TEST(DeadStores, RemovesWhatNobodyReads) {
  EXPECT_EQ(run(removeDeadStores, withZ("  %a = alloc f32[4]\n  Add @out %a, @in %x, @in %w\n  %b = alloc f32[4]\n"
                                        "  Neg @out %b, @in %a\n  dealloc %b\n  dealloc %a\n  Neg @out %y, @in %x\n"
                                        "  Exp @out %y, @in %x\n")),
            withZ("  Exp @out %y, @in %x\n"));
}

TEST(DeadStores, TreatsBothHalvesOfACopyAlike) {
  const std::string needed = withZ("  copy.start @out %y, @in %x token 1\n  copy.wait @out %y, @in %x token 1\n");
  EXPECT_EQ(run(removeDeadStores, needed), needed);
  EXPECT_EQ(run(removeDeadStores, withZ("  %a = alloc f32[4]\n  copy.start @out %a, @in %x token 1\n"
                                        "  copy.wait @out %a, @in %x token 1\n  dealloc %a\n" +
                                        std::string(kWriteY))),
            withZ(kWriteY));
  // Another part is read while nobody reads what is copied.
  const std::string other = "  %a = alloc f32[8]\n  %back = tensorview %a at 16 : f32[4]\n  Neg @out %back, @in %x\n";
  const std::string reader = "  Exp @out %y, @in %back\n";
  EXPECT_EQ(run(removeDeadStores,
                withZ(other + "  %front = tensorview %a at 0 : f32[4]\n  copy.start @out %front, @in %x token 1\n" +
                      reader + "  copy.wait @out %front, @in %x token 1\n  dealloc %a\n")),
            withZ(other + reader + "  dealloc %a\n"));
}

TEST(DeadStores, KeepsOutputsPartsAndWhatAPredicateMayLeaveOut) {
  const std::string body = withZ(
      "  Neg @out %y, @in %x\n  %v = tensorview %y at 0 : f32[2]\n  %u = tensorview %x at 0 : f32[2]\n"
      "  Exp @out %v, @in %u\n");
  EXPECT_EQ(run(removeDeadStores, body), body);
}

TEST(Lifetimes, AreAsShortAsCanBe) {
  EXPECT_EQ(run(tightenLifetimes, withZ("  %a = alloc f32[4]\n  %b = alloc f32[4]\n  Neg @out %a, @in %x\n"
                                        "  Exp @out %y, @in %a\n  Neg @out %b, @in %y\n  dealloc %a\n"
                                        "  Exp @out %y, @in %b\n  dealloc %b\n")),
            withZ("  %a = alloc f32[4]\n  Neg @out %a, @in %x\n  Exp @out %y, @in %a\n  dealloc %a\n"
                  "  %b = alloc f32[4]\n  Neg @out %b, @in %y\n  Exp @out %y, @in %b\n  dealloc %b\n"));
}

}  // namespace
}  // namespace aglow
