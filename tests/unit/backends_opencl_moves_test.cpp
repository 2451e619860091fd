// Kernels that move elements: how many different ones a device is given, and transposes by squares.
#include <gmock/gmock.h>

#include <set>

#include "codegen/clike/launch.h"
#include "on_device.h"

namespace aglow {

namespace {

// Different texts of all kernels of a function.
std::set<std::string> textsOf(const Function& function, const codegen::DeviceShape& shape) {
  const Result<Program> program = generate(function);
  EXPECT_TRUE(program.ok());
  std::set<std::string> texts;
  for (const Instr& instr : program->instrs)
    if (instr.kind == Instr::Kind::Compute)
      for (const codegen::Launch& launch : codegen::launchesOf(*program, instr, shape)) texts.insert(launch.text);
  return texts;
}

TEST(Moves, AreOneKernelForAllPartsOfAWhole) {
  for (const bool shares : {false, true}) {
    const codegen::DeviceShape shape{.sharesLocal = shares};
    Module module;
    Builder slices(*module.addFunction("slices")), concat(*module.addFunction("concat"));
    const Value x = slices.input("x", Type(ElemKind::Float32, Shape{16, 8, 20}));
    for (int64_t i = 0; i < 16; ++i)
      slices.output("y" + std::to_string(i), slices.slice(x, {.starts = {i, 4, 8}, .sizes = {1, 4, 12}}));
    EXPECT_EQ(textsOf(slices.function(), shape).size(), 1u);

    std::vector<Value> parts;
    for (int64_t i = 0; i < 16; ++i)
      parts.push_back(concat.input("x" + std::to_string(i), Type(ElemKind::Int8, Shape{3, 4, 5})));
    concat.output("y", concat.concat(parts, {.axis = 1}));
    EXPECT_EQ(textsOf(concat.function(), shape).size(), 1u);
  }
}

struct Transposed {
  Shape shape;
  std::vector<int64_t> perm;
  bool squares;  // neighbours are others afterwards, and there are some
};

constexpr ElemKind kKinds[] = {ElemKind::Float32, ElemKind::Int8, ElemKind::BFloat16, ElemKind::Int64};

TEST_F(OnGroups, TransposesGoThroughSquaresInLocalMemory) {
  const Transposed cases[] = {
      {{70, 45}, {1, 0}, true},
      {{3, 33, 64}, {0, 2, 1}, true},
      {{2, 10, 3, 40}, {3, 1, 0, 2}, false},  // two neighbours of three
      {{9, 4, 35, 8}, {2, 3, 1, 0}, true},
      {{4, 8, 31, 5}, {0, 3, 1, 2}, false},
      {{4, 8, 31, 6}, {0, 2, 1, 3}, false},
      {{2, 20, 5, 7}, {0, 2, 3, 1}, true},  // two axes walk as one
  };
  uint64_t seed = 1;
  for (const Transposed& c : cases) {
    SCOPED_TRACE(seed);
    const ElemKind kind = kKinds[seed++ % std::size(kKinds)];
    Module module;
    Builder b(*module.addFunction("f"));
    b.output("y", b.transposed(b.input("x", Type(kind, c.shape)), c.perm));
    expectSame(b.function(), seed, false);
    const std::set<std::string> texts = textsOf(b.function(), backend_->shape());
    ASSERT_EQ(texts.size(), 1u);
    EXPECT_EQ(texts.begin()->find("BARRIER") != std::string::npos, c.squares);
    EXPECT_EQ(textsOf(b.function(), {.sharesLocal = false}).begin()->find("BARRIER"), std::string::npos);
  }
}

class TransposedProducts : public OnBoth {};

INSTANTIATE_TEST_SUITE_P(Devices, TransposedProducts, ::testing::Bool(), OnBoth::nameOf);

TEST_P(TransposedProducts, ReadTheLeftSideAsItLies) {
  const std::pair<Shape, Shape> cases[] = {
      {{1, 1}, {1, 1}}, {{64, 36}, {64, 40}}, {{3, 20, 33}, {3, 20, 17}}, {{2, 3, 5, 70}, {2, 3, 5, 8}}};
  uint64_t seed = 1;
  for (const auto& [left, right] : cases) {
    SCOPED_TRACE(seed);
    Module module;
    Builder b(*module.addFunction("f"));
    const Value x = b.input("x", Type(ElemKind::Float32, left)), w = b.input("w", Type(ElemKind::Float32, right));
    b.output("y", b.abs(b.transposedMatMul(x, w)));
    expectSame(b.function(), seed++, false);
  }
}

TEST_F(OnDevice, TransposesNothingForProducts) {
  auto module = parseModule(R"(module {
  placeholder @x : f32[5,6,7]
  placeholder @w : f32[5,6,9]
  placeholder @y : f32[5,7,9]
  func @main {
    %t = Transpose(@x) {perm = [0,2,1]}
    %y = MatMul(%t, @w)
    Save(%y, @y)
  }
})");
  ASSERT_TRUE(module.ok()) << module.error().text();
  CompileOptions options;
  options.backend = "opencl:" + backend_->device().address();
  auto compilation = compileModule(*std::move(module), options);
  ASSERT_TRUE(compilation.ok());
  int computed = 0;
  for (const Instr& instr : compilation->programs.front().instrs) computed += instr.kind == Instr::Kind::Compute;
  EXPECT_EQ(computed, 1);
}

}  // namespace

}  // namespace aglow
