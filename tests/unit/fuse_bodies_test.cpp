#include <gmock/gmock.h>

#include "backends/interpreter/interpreter.h"
#include "fuse/fit.h"
#include "fuse/fuse.h"
#include "inst/text.h"
#include "inst/verifier.h"
#include "memory/pass_table.h"

namespace aglow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// What runs, one line an instruction: operators, the bodies of fused ones in brackets.
std::vector<std::string> outline(const Program& program) {
  std::vector<std::string> lines;
  for (const Instr& instr : program.instrs) {
    if (instr.isMarker()) continue;
    std::string line(instrName(instr));
    if (instr.kind == Instr::Kind::Fused) {
      line = "[";
      for (const Instr& step : instr.body)
        line += std::string(line.size() > 1 ? " " : "") + std::string(instrName(step));
      line += "]";
    }
    lines.push_back(line);
  }
  return lines;
}

constexpr std::string_view kDeclared =
    "declare {\n  %x = placeholder f32[2,3]\n  %w = constant f32[3] = [1, 2, 3]\n  %y = placeholder f32[2,3]\n"
    "  %z = placeholder f32[2,3]\n  %r = placeholder f32[2,1]\n  %p = placeholder bool[]\n"
    "  %q = placeholder bool[]\n  %square = placeholder f32[3,3]\n  %state = placeholder f32[2,3]\n}\n";

// Buffers a, b, c ... of the loop's shape, without marks.
Program parsed(std::string_view body) {
  std::string text = std::string(kDeclared) +
                     "program @f(@in %x, @out %y, @out %z, @in %r, @in %p, @in %q, @in %square, @inout %state) {\n";
  for (const char name : std::string_view("abcdefgh")) text += std::string("%") + name + " = alloc f32[2,3] ";
  text += "%m = alloc f32[2,1] %n = alloc f32[2,1] ";
  text += std::string(body) + "\n";
  for (const char name : std::string_view("abcdefghmn")) text += std::string("dealloc %") + name + " ";
  auto program = parseProgram(text + "}");
  EXPECT_TRUE(program.ok()) << program.error().text();
  return *std::move(program);
}

class Policy : public FusePolicy {
public:
  Decision takesEpilogue(const Program& /*program*/, const Instr& anchor) const override {
    return anchors && instrName(anchor) == "MatMul" ? Decision::yes() : Decision::no("not that");
  }
  Decision joins(const Program& /*program*/, const Instr& /*anchor*/, const Instr& candidate) const override {
    return instrName(candidate) != "Exp" ? Decision::yes() : Decision::no("not Exp");
  }
  int64_t rowBytes() const override { return row; }

  bool anchors = true;
  int64_t row = 32 << 10;
};

Program fused(std::string_view body, const Policy& policy = {}) {
  Program program = parsed(body);
  const auto changed = fuseInstructions(program, policy);
  EXPECT_TRUE(changed.ok());
  const auto again = parseProgram(print(program));
  EXPECT_TRUE(again.ok() && *again == program) << print(program);
  return program;
}

std::vector<std::string> fuse(std::string_view body, const Policy& policy = {}) { return outline(fused(body, policy)); }

TEST(Fuse, TakesApartWhatThePolicyWouldNotFuse) {
  Program program =
      parsed("MatMul @out %a, @in %x, @in %square Relu @out %b, @in %a copy @out %y, @in %b copy @out %z, @in %x");
  ASSERT_TRUE(fuseInstructions(program, fuseEverything()).ok());
  EXPECT_THAT(outline(program), ElementsAre("[MatMul Relu]", "copy", "copy"));
  Policy policy;
  policy.anchors = true;
  EXPECT_FALSE(takeApart(program, policy));
  policy.anchors = false;
  EXPECT_TRUE(takeApart(program, policy));
  EXPECT_THAT(outline(program), ElementsAre("MatMul", "Relu", "copy", "copy"));
  EXPECT_TRUE(verify(program).ok()) << verify(program).error().text();
}

TEST(Fuse, FusesChainsOfDataParallelInstructions) {
  const Program program =
      fused("Add @out %a, @in %x, @in %w Exp @out %b, @in %a Mul @out %c, @in %b, @in %a copy @out %y, @in %c");
  EXPECT_THAT(outline(program), ElementsAre("[Add Exp Mul]", "copy"));
  EXPECT_THAT(print(program), HasSubstr("fused @out %c, @in %x, @in %w from \"a+b+c\" {"));
  EXPECT_THAT(print(program), HasSubstr("%a = local f32[2,3]"));
}

TEST(Fuse, StoresWhatIsReadElsewhereToo) {
  const Program program = fused("Neg @out %a, @in %x Exp @out %b, @in %a copy @out %y, @in %b copy @out %z, @in %a");
  EXPECT_THAT(outline(program), ElementsAre("[Neg Exp]", "copy", "copy"));
  EXPECT_THAT(print(program), HasSubstr("fused @out %a, @out %b, @in %x"));
  // Through a view is elsewhere, too.
  EXPECT_THAT(fuse("Neg @out %a, @in %x %v = tensorview %a at 0 : f32[2,3] Exp @out %b, @in %v copy @out %y, @in %b"),
              ElementsAre("Neg", "Exp", "copy"));
}

TEST(Fuse, JoinsSeveralChains) {
  EXPECT_THAT(fuse("Neg @out %a, @in %x Exp @out %b, @in %x Abs @out %c, @in %a Mul @out %d, @in %b, @in %c "
                   "copy @out %y, @in %d"),
              ElementsAre("[Neg Exp Abs Mul]", "copy"));
}

TEST(Fuse, KeepsPredicatesApart) {
  const Program program =
      fused("Neg @out %a, @in %x if %p Exp @out %b, @in %a if %p Abs @out %c, @in %b if %q copy @out %y, @in %c");
  EXPECT_THAT(outline(program), ElementsAre("[Neg Exp]", "Abs", "copy"));
  EXPECT_THAT(print(program), HasSubstr("fused @out %b, @in %x if %p from \"a+b\" {"));
}

TEST(Fuse, LeavesSmallerProducersAlone) {
  EXPECT_THAT(fuse("Neg @out %m, @in %r Add @out %a, @in %x, @in %m copy @out %y, @in %a"),
              ElementsAre("Neg", "Add", "copy"));
}

TEST(Fuse, FusesRows) {
  constexpr std::string_view kSoftmax =
      "Reduce @out %m, @in %x {kind = max, axes = [1]} Sub @out %a, @in %x, @in %m Exp @out %b, @in %a "
      "Reduce @out %n, @in %b {axes = [1]} Div @out %c, @in %b, @in %n copy @out %y, @in %c";
  EXPECT_THAT(fuse(kSoftmax), ElementsAre("[Reduce Sub Exp Reduce Div]", "copy"));
  // Values of one row, too.
  EXPECT_THAT(fuse("Mul @out %a, @in %x, @in %x Reduce @out %m, @in %a {axes = [1]} Add @out %n, @in %m, @in %r "
                   "Mul @out %b, @in %x, @in %n copy @out %y, @in %b"),
              ElementsAre("[Mul Reduce Add Mul]", "copy"));
  // Exp would have to be kept while the row is summed up.
  EXPECT_THAT(fuse(kSoftmax,
                   [] {
                     Policy policy;
                     policy.row = 11;
                     return policy;
                   }()),
              ElementsAre("[Reduce Sub Exp Reduce]", "Div", "copy"));
  // Columns are not rows.
  EXPECT_THAT(fuse("Neg @out %a, @in %x %k = alloc f32[1,3] Reduce @out %k, @in %a {axes = [0]} "
                   "Sub @out %b, @in %x, @in %k copy @out %y, @in %b dealloc %k"),
              ElementsAre("Neg", "Reduce", "Sub", "copy"));
}

TEST(Fuse, FusesWithAnchors) {
  EXPECT_THAT(fuse("MatMul @out %a, @in %x, @in %square Add @out %b, @in %a, @in %w Relu @out %c, @in %b "
                   "copy @out %y, @in %c"),
              ElementsAre("[MatMul Add Relu]", "copy"));
  // The policy has its say.
  EXPECT_THAT(fuse("MatMul @out %a, @in %x, @in %square Exp @out %b, @in %a Relu @out %c, @in %b copy @out %y, @in %c"),
              ElementsAre("MatMul", "[Exp Relu]", "copy"));
  Policy none;
  none.anchors = false;
  EXPECT_THAT(fuse("MatMul @out %a, @in %x, @in %square Relu @out %b, @in %a copy @out %y, @in %b", none),
              ElementsAre("MatMul", "Relu", "copy"));
  // Only one anchor, and what it reads comes before it.
  EXPECT_THAT(fuse("MatMul @out %a, @in %x, @in %square MatMul @out %b, @in %a, @in %square "
                   "Add @out %c, @in %a, @in %b copy @out %y, @in %c"),
              ElementsAre("MatMul", "[MatMul Add]", "copy"));
  EXPECT_THAT(fuse("Neg @out %a, @in %x MatMul @out %b, @in %a, @in %square Add @out %c, @in %a, @in %b "
                   "copy @out %y, @in %c"),
              ElementsAre("Neg", "[MatMul Add]", "copy"));
  // A chain beside it may join; the anchor stays the first.
  EXPECT_THAT(fuse("Neg @out %a, @in %x MatMul @out %b, @in %x, @in %square Mul @out %c, @in %a, @in %b "
                   "copy @out %y, @in %c"),
              ElementsAre("[MatMul Neg Mul]", "copy"));
  // Reductions do not.
  EXPECT_THAT(fuse("MatMul @out %a, @in %x, @in %square Relu @out %b, @in %a Reduce @out %m, @in %b {axes = [1]} "
                   "Sub @out %c, @in %b, @in %m copy @out %y, @in %c"),
              ElementsAre("[MatMul Relu]", "[Reduce Sub]", "copy"));
}

TEST(Fuse, KeepsTheOrderOfWhatDepends) {
  // The product needs a and gives b: no loop has both, but the first may go without the last.
  EXPECT_THAT(fuse("Neg @out %a, @in %x MatMul @out %b, @in %a, @in %square Exp @out %c, @in %a Add @out %d, @in %c, "
                   "@in %b copy @out %y, @in %d copy @out %z, @in %c"),
              ElementsAre("[Neg Exp]", "[MatMul Add]", "copy", "copy"));
  // Moved up: the product stands between.
  EXPECT_THAT(fuse("Neg @out %a, @in %x MatMul @out %b, @in %a, @in %square Exp @out %c, @in %a copy @out %y, @in %b "
                   "copy @out %z, @in %c"),
              ElementsAre("[Neg Exp]", "MatMul", "copy", "copy"));
  // Moved down: b is not there before.
  EXPECT_THAT(fuse("Neg @out %a, @in %x MatMul @out %b, @in %x, @in %square Exp @out %d, @in %b Add @out %c, @in %a, "
                   "@in %d copy @out %y, @in %c"),
              ElementsAre("MatMul", "[Neg Exp Add]", "copy"));
}

TEST(Fuse, StoresNarrowValuesForLaterReaders) {
  // What the second product adds is read as bytes, of which there are less.
  constexpr std::string_view kBytes =
      "%s = alloc u8[2,3] %t = alloc f32[2,3] MatMul @out %a, @in %x, @in %square "
      "Cast @out %s, @in %a {to = u8} ";
  constexpr std::string_view kEnd = "copy @out %y, @in %e dealloc %s dealloc %t";
  const auto with = [&](std::string_view body) { return std::string(kBytes) + std::string(body) + std::string(kEnd); };
  EXPECT_THAT(fuse(with("Cast @out %b, @in %s Mul @out %c, @in %b, @in %w MatMul @out %d, @in %x, @in %square "
                        "Add @out %e, @in %d, @in %c ")),
              ElementsAre("[MatMul Cast]", "[MatMul Cast Mul Add]", "copy"));
  // And so are rows that are reduced.
  EXPECT_THAT(fuse(with("Cast @out %b, @in %s Mul @out %c, @in %b, @in %w Reduce @out %m, @in %c {axes = [1]} "
                        "Sub @out %e, @in %c, @in %m ")),
              ElementsAre("[MatMul Cast]", "[Cast Mul Reduce Sub]", "copy"));
  // A chain of one anchor stays together, and so does what its reader does not wait for.
  EXPECT_THAT(fuse(with("Cast @out %b, @in %s Neg @out %c, @in %x Add @out %e, @in %b, @in %c ")),
              ElementsAre("[MatMul Cast Cast Neg Add]", "copy"));
  // What is read from memory in any case is computed where its operand is.
  EXPECT_THAT(fuse(with("Cast @out %b, @in %s MatMul @out %e, @in %b, @in %square ")),
              ElementsAre("[MatMul Cast Cast]", "MatMul", "copy"));
}

TEST(Fuse, StaysBetweenWrites) {
  // The first reads the old state, the second the new one.
  EXPECT_THAT(fuse("Neg @out %a, @in %state copy @out %state, @in %x Add @out %b, @in %a, @in %state "
                   "copy @out %y, @in %b"),
              ElementsAre("Neg", "copy", "Add", "copy"));
  EXPECT_THAT(fuse("Neg @out %a, @in %state Abs @out %b, @in %a copy @out %state, @in %b Exp @out %c, @in %state "
                   "copy @out %y, @in %c"),
              ElementsAre("[Neg Abs]", "copy", "Exp", "copy"));
  // A buffer with two lives.
  EXPECT_THAT(fuse("Neg @out %a, @in %x Abs @out %b, @in %a Relu @out %a, @in %x Add @out %c, @in %b, @in %a "
                   "copy @out %y, @in %c"),
              Not(ElementsAre("[Neg Abs Relu Add]", "copy")));
}

// Of composites that a backend keeps, results that nobody reads are not there, and nobody needs to read the first.
TEST(Fuse, LooksAtResultsThatAreThere) {
  auto program = parseProgram(
      "declare { %x = placeholder f32[3,2,4] %w = placeholder f32[1,20,4] %r = placeholder f32[1,20,5] "
      "%c = placeholder f32[1,2,5] }\nprogram @f(@in %x, @in %w, @in %r, @out %c) { %y = alloc f32[3,1,2,5] "
      "LSTM @out %y, @out _, @out %c, @in %x, @in %w, @in %r dealloc %y }");
  ASSERT_TRUE(program.ok()) << program.error().text();
  EXPECT_FALSE(*fuseInstructions(*program, fuseEverything()));
  EXPECT_EQ(outline(*program), std::vector<std::string>{"LSTM"});
}

TEST(Fuse, CountsOperandsThatAreThere) {
  struct Bounded : Policy {
    explicit Bounded(size_t bound) : most(bound) {}
    Decision takesEpilogue(const Program& /*program*/, const Instr& /*anchor*/) const override {
      return Decision::yes();
    }
    size_t mostOperands() const override { return most; }
    size_t most;
  };
  const auto fused = [](size_t most) {
    auto program = parseProgram(
        "declare { %x = placeholder f32[3,2,4] %w = placeholder f32[1,20,4] %r = placeholder f32[1,20,5] "
        "%z = placeholder f32[3,1,2,5] }\nprogram @f(@in %x, @in %w, @in %r, @out %z) { %y = alloc f32[3,1,2,5] "
        "LSTM @out %y, @out _, @out _, @in %x, @in %w, @in %r Relu @out %z, @in %y dealloc %y }");
    EXPECT_TRUE(program.ok()) << program.error().text();
    EXPECT_TRUE(fuseInstructions(*program, Bounded(most)).ok());
    return outline(*program);
  };
  EXPECT_THAT(fused(4), ElementsAre("[LSTM Relu]"));  // x, w, r, z
  EXPECT_THAT(fused(3), ElementsAre("LSTM", "Relu"));
}

TEST(Fuse, BoundsTheSizeOfBodies) {
  std::string text =
      "declare { %x = placeholder f32[4] %y = placeholder f32[4] }\nprogram @f(@in %x, @out %y) { %v0 = alloc f32[4] "
      "Neg @out "
      "%v0, @in %x ";
  for (int i = 1; i < 200; ++i) {
    const std::string now = std::to_string(i), before = std::to_string(i - 1);
    text += "%v" + now + " = alloc f32[4] Neg @out %v" + now + ", @in %v" + before + " dealloc %v" + before + " ";
  }
  auto program = parseProgram(text + "copy @out %y, @in %v199 dealloc %v199 }");
  ASSERT_TRUE(program.ok()) << program.error().text();
  ASSERT_TRUE(*fuseInstructions(*program, fuseEverything()));
  ASSERT_TRUE(verify(*program).ok()) << verify(*program).error().text();
  size_t most = 0, sum = 0;
  for (const Instr& instr : program->instrs) {
    most = std::max(most, instr.body.size());
    sum += instr.body.size();
  }
  EXPECT_EQ(most, 64U);
  EXPECT_EQ(sum, 200U);
  // What is fused stays as it is.
  Program again = *program;
  EXPECT_FALSE(*fuseInstructions(again, fuseEverything()));
  EXPECT_TRUE(again == *program);
}

}  // namespace
}  // namespace aglow
