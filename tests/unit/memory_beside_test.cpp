// Which instructions come to run side by side, as text before and after.
#include <gmock/gmock.h>

#include "inst/lifetimes.h"
#include "inst/text.h"
#include "inst/verifier.h"
#include "memory/passes.h"
#include "memory/place.h"

namespace aglow {
namespace {

// The instructions after the pass, without marks and plans. %x, %y and %z have the given number of elements; 10'000 of
// them are worth two threads for one instruction.
std::vector<std::string> after(int64_t elements, std::string body) {
  const std::string type = "f32[" + std::to_string(elements) + "]";
  for (size_t at = 0; (at = body.find("TYPE", at)) != std::string::npos;) body.replace(at, 4, type);
  auto program = parseProgram("declare {\n  %x = placeholder " + type + "\n  %y = placeholder " + type +
                              "\n  %z = placeholder " + type + "\n  %p = placeholder bool[]\n}\n" +
                              "program @f(@in %x, @out %y, @out %z, @in %p) {\n" + body + "}\n");
  EXPECT_TRUE(program.ok()) << program.error().text();
  markLifetimes(*program);
  Program before = *program;
  EXPECT_TRUE(putBeside(*program).ok());
  const Status valid = verify(*program);
  EXPECT_TRUE(valid.ok()) << valid.error().text() << print(*program);
  EXPECT_TRUE(placeArena(before).ok() && placeArena(*program).ok());
  EXPECT_LE(program->arenaBytes, before.arenaBytes);
  std::vector<std::string> lines;
  for (const Instr& instr : program->instrs)
    if (!instr.isMarker()) lines.push_back((instr.beside ? "beside " : "") + print(*program, instr));
  return lines;
}

constexpr const char* kBranches =
    "%a = alloc TYPE\n%b = alloc TYPE\n%c = alloc TYPE\n%d = alloc TYPE\n"
    "Abs @out %a, @in %x by loops units 64\nNeg @out %b, @in %a by loops units 64\n"
    "Exp @out %c, @in %x by loops units 64\nNeg @out %d, @in %c by loops units 64\n"
    "Add @out %y, @in %b, @in %d by loops units 64\nNeg @out %z, @in %x by loops units 64\n"
    "dealloc %a\ndealloc %b\ndealloc %c\ndealloc %d\n";

using ::testing::ElementsAre;

TEST(PutBeside, IndependentInstructionsBecomeNeighbours) {
  // Side by side, the second instructions of both branches would have four buffers alive instead of three.
  EXPECT_THAT(after(10'000, kBranches),
              ElementsAre("Abs @out %a, @in %x", "beside Exp @out %c, @in %x", "beside Neg @out %z, @in %x",
                          "Neg @out %b, @in %a", "Neg @out %d, @in %c", "Add @out %y, @in %b, @in %d"));
}

TEST(PutBeside, SmallOnesStayAlone) {
  EXPECT_THAT(after(64, kBranches), ::testing::Each(::testing::Not(::testing::StartsWith("beside"))));
}

TEST(PutBeside, LargeOnesFillTheThreadsAloneUnlessTheirPiecesAreFew) {
  std::string many = kBranches;
  for (size_t at = 0; (at = many.find("units 64", at)) != std::string::npos; at += 9) many.replace(at, 8, "units 640");
  EXPECT_THAT(after(4'000'000, many), ::testing::Each(::testing::Not(::testing::StartsWith("beside"))));
  EXPECT_THAT(after(4'000'000, kBranches), ::testing::Contains(::testing::StartsWith("beside")));
}

TEST(PutBeside, NobodySharesWithoutAPlan) {
  EXPECT_THAT(after(100'000, "Abs @out %y, @in %x\nNeg @out %z, @in %x\n"),
              ElementsAre("Abs @out %y, @in %x", "Neg @out %z, @in %x"));
}

TEST(PutBeside, PredicatesAreForOneInstruction) {
  EXPECT_THAT(after(100'000, "Abs @out %y, @in %x if %p by loops units 64\nNeg @out %z, @in %x by loops units 64\n"),
              ElementsAre("Abs @out %y, @in %x if %p", "Neg @out %z, @in %x"));
}

TEST(PutBeside, NobodyPassesWhatItDependsOn) {
  // The last one reads what the second writes, though it is independent of the first.
  EXPECT_THAT(after(10'000,
                    "%a = alloc TYPE\nAbs @out %a, @in %x by loops units 64\nNeg @out %y, @in %a by loops units 64\n"
                    "Exp @out %z, @in %y by loops units 64\ndealloc %a\n"),
              ElementsAre("Abs @out %a, @in %x", "Neg @out %y, @in %a", "Exp @out %z, @in %y"));
}

}  // namespace
}  // namespace aglow
