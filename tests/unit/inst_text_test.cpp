#include "inst/text.h"

#include <gmock/gmock.h>

#include "graph/builder.h"
#include "inst/dot.h"
#include "inst/irgen.h"
#include "inst/verifier.h"
#include "memory/place.h"

namespace aglow {
namespace {

using ::testing::HasSubstr;

// Everything the grammar knows.
constexpr std::string_view kAll = R"(declare {
  %w = constant f32[2] = [0.5, -1]
  %x = placeholder f32[2]
  %p = placeholder bool[]
  %state = placeholder f32[2]
  %"an output" = placeholder f32[2]
  %kept = state f32[2] = [0.5, 1]
  %s = splat f32[2] = -0
  %r = xavier f32[4,4] fan 16 seed 18446744073709551615
}
program @main(@in %x, @in %p, @inout %state, @out %"an output") arena 64 {
  %a = alloc f32[2] at 0
  Add @out %a, @in %x, @in %w
  Relu @inout %a, @in %a if %p from "relu \"1\""
  %v = tensorview %a at 4 : f32[1]
  %v2 = tensorview %r at 16 : f32[1]
  Neg @out %v2, @in %v, @scratch %s
  copy @out %state, @in %a
  copy @out %kept, @in %a
  copy.start @out %"an output", @in %state token 3
  copy.wait @out %"an output", @in %state token 3
  dealloc %a
}
)";

TEST(InstText, PrintsWhatItParsed) {
  const std::string text = std::string(kAll);
  const auto program = parseProgram(text);
  ASSERT_TRUE(program.ok()) << program.error().text();
  EXPECT_TRUE(verify(*program).ok()) << verify(*program).error().text();
  // What is named after its first operand needs no origin; copies here have none either.
  EXPECT_EQ(print(*program), text);
  const auto again = parseProgram(print(*program));
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(*again == *program);
}

TEST(InstText, SaysWhichLineAnInstructionIs) {
  const auto program = parseProgram(R"(declare {
  %x = placeholder f32[2]
  %y = placeholder f32[2]
}
program @main(@in %x, @out %y) arena 64 {
  %a = alloc f32[2] at 0
  fused @out %a, @in %x from "both" {
    %n = local f32[2]
    Neg @out %n, @in %x
    Relu @out %a, @in %n
  }
  copy @out %y, @in %a
  dealloc %a
}
)");
  ASSERT_TRUE(program.ok()) << program.error().text();
  std::vector<int> lines;
  print(*program, nullptr, &lines);
  EXPECT_EQ(lines, (std::vector<int>{6, 7, 12, 13}));
}

TEST(InstText, RoundTripsGeneratedPrograms) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value x = b.input("an \xff image", Type(ElemKind::Float32, Shape{1, 3, 8, 8}));
  const Value filter = b.constant(Tensor(Type(ElemKind::Float32, Shape{4, 3, 3, 3})), "w");
  std::vector<float> ramp(4 * 4 * 6 * 6);
  for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i);
  const Value big = b.constant(Tensor::of(Type(ElemKind::Float32, Shape{4, 144}), ramp), "big");
  const Value conv = b.named("conv").conv(x, filter, {}, {.strides = {1, 1}});
  const Value flat = b.named("flat").reshape(conv, {.shape = {1, 144}});
  b.output("y", b.named("sum").add(flat, big));
  auto program = generate(b.function());
  ASSERT_TRUE(program.ok()) << program.error().text();
  for (const bool placed : {false, true}) {
    if (placed) ASSERT_TRUE(placeArena(*program).ok());
    ASSERT_TRUE(verify(*program).ok()) << verify(*program).error().text();
    BlobStore blobs;
    const std::string text = print(*program, &blobs);
    EXPECT_THAT(text, HasSubstr("Conv @out %conv, @in %\"an \\xff image\", @in %w"));
    EXPECT_THAT(text, HasSubstr("= blob 0x"));
    const auto again = parseProgram(text, blobs);
    ASSERT_TRUE(again.ok()) << again.error().text() << text;
    EXPECT_TRUE(*again == *program) << text;
    EXPECT_EQ(print(*again, &blobs), text);
  }
}

TEST(InstText, KeepsAbsentOperandsInTheirPlace) {
  const std::string text =
      "declare {\n  %x = placeholder f32[2]\n  %y = placeholder f32[2]\n}\nprogram @f(@in %x, @out %y) {\n"
      "  Clip @out %y, @in %x, @in _, @in %x\n}\n";
  const auto program = parseProgram(text);
  ASSERT_TRUE(program.ok()) << program.error().text();
  EXPECT_EQ(program->instrs[0].operands[2].region, kNoRegion);
  EXPECT_EQ(print(*program), text);
}

struct BadCase {
  std::string_view body;
  std::string_view place;
  std::string_view message;
};

TEST(InstText, NamesTheFaultAndItsPlace) {
  const BadCase cases[] = {
      {"  Relu @out %nope, @in %x", "4:13", "no region"},
      {"  %x = alloc f32[2]", "4:3", "defined twice"},
      {"  Rleu @out %y, @in %x", "4:3", "expected an operator"},
      {"  Relu @ouch %y, @in %x", "4:8", "@in, @out"},
      {"  Relu @out none, @in %x", "4:13", "a region"},
      {"  %v = tensorview %x at 4 : f32[2]", "4:25", "do not lie inside"},
      {"  %v = tensorview %x at 9223372036854775807 : f32[2]", "4:25", "cannot be"},
      {"  %v = tensorview %x at -4 : f32[1]", "4:25", "cannot be"},
      {"  %a = alloc f32[2] at -64", "4:24", "cannot be"},
      {"  copy @out %y", "4:3", "a destination and a source"},
      {"  copy.start @out %y, @in %x", "5:1", "expected 'token'"},
      {"  Relu @out %y, @in %x from relu", "4:29", "in quotes"},
      {"  %z = constant f32[1] = [1]", "4:8", "'alloc' or 'tensorview'"},
      {"} module @g {", "4:3", "end of the text"},
  };
  for (const BadCase& c : cases) {
    const std::string text =
        "declare { %x = placeholder f32[2]\n%y = placeholder f32[2] }\nprogram @f(@in %x, @out %y) {\n" +
        std::string(c.body) + "\n}\n";
    const auto program = parseProgram(text);
    ASSERT_FALSE(program.ok()) << c.body;
    EXPECT_EQ(program.error().code, Code::BadText);
    EXPECT_EQ(program.error().where, c.place) << c.body << ": " << program.error().text();
    EXPECT_THAT(program.error().message, HasSubstr(c.message));
  }
}

TEST(InstText, EveryCutOfATextIsAnErrorNotACrash) {
  const std::string text = std::string(kAll);
  for (size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_FALSE(parseProgram(text.substr(0, length)).ok()) << length;
}

TEST(InstDot, DrawsInstructionsAndTheirRegions) {
  const auto program = parseProgram(kAll);
  ASSERT_TRUE(program.ok());
  const std::string drawing = drawDot(*program);
  EXPECT_THAT(drawing, ::testing::StartsWith("digraph aglow {"));
  EXPECT_THAT(drawing, HasSubstr("label=\"1: Add\""));
  EXPECT_THAT(drawing, HasSubstr("label=\"a\\nf32[2]\\nat 0\""));
  EXPECT_THAT(drawing, HasSubstr("label=\"if\", style=dashed"));
  EXPECT_THAT(drawing, HasSubstr("style=dashed, arrowhead=none"));
}

}  // namespace
}  // namespace aglow
