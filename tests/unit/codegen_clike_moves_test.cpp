// Kernels that move elements: how many different ones a device is given.
#include <gtest/gtest.h>

#include <set>

#include "codegen/clike/launch.h"
#include "graph/builder.h"
#include "inst/irgen.h"

namespace aglow {

namespace {

// Different texts of all kernels of a function.
size_t textsOf(const Function& function, const codegen::DeviceShape& shape) {
  const Result<Program> program = generate(function);
  EXPECT_TRUE(program.ok());
  std::set<std::string> texts;
  for (const Instr& instr : program->instrs)
    if (instr.kind == Instr::Kind::Compute)
      for (const codegen::Launch& launch : codegen::launchesOf(*program, instr, shape)) texts.insert(launch.text);
  return texts.size();
}

TEST(Moves, AreOneKernelForAllPartsOfAWhole) {
  for (const bool shares : {false, true}) {
    const codegen::DeviceShape shape{.sharesLocal = shares};
    Module module;
    Builder slices(*module.addFunction("slices")), concat(*module.addFunction("concat"));
    const Value x = slices.input("x", Type(ElemKind::Float32, Shape{16, 8, 20}));
    for (int64_t i = 0; i < 16; ++i)
      slices.output("y" + std::to_string(i), slices.slice(x, {.starts = {i, 4, 8}, .sizes = {1, 4, 12}}));
    EXPECT_EQ(textsOf(slices.function(), shape), 1u);

    std::vector<Value> parts;
    for (int64_t i = 0; i < 16; ++i)
      parts.push_back(concat.input("x" + std::to_string(i), Type(ElemKind::Int8, Shape{3, 4, 5})));
    concat.output("y", concat.concat(parts, {.axis = 1}));
    EXPECT_EQ(textsOf(concat.function(), shape), 1u);
  }
}

}  // namespace

}  // namespace aglow
