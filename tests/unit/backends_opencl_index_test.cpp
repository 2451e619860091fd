// Updates that meet at rows, as processors and as GPUs get them, against the reference to the bit: the order in which
// they are combined shows in every sum of f64.
#include "codegen/clike/launch.h"
#include "on_device.h"
#include "ops/all_ops.h"

namespace aglow {

namespace {

class IndexKernels : public OnBoth {
protected:
  struct Case {
    int64_t rows, updates, length;
    std::function<int64_t(Rng&, int64_t)> row;  // of the update with a number
    ElemKind kind = ElemKind::Float64;
    const char* reduction = "add";
  };

  void expectBits(const Case& c) const {
    SCOPED_TRACE(fmt::format("{} updates of {} rows of {} {}", c.updates, c.rows, c.length, elemName(c.kind)));
    Rng rng(3);
    std::vector<double> indices(static_cast<size_t>(c.updates));
    for (size_t i = 0; i < indices.size(); ++i) {
      const int64_t row = c.row(rng, static_cast<int64_t>(i));
      indices[i] = static_cast<double>(rng.flip() ? row : row - c.rows);
    }
    Module module;
    Builder b(*module.addFunction("f"));
    const auto input = [&](const char* name, int64_t rows) {
      return b.input(name, Type(c.kind, c.length == 1 ? Shape{rows} : Shape{rows, c.length}));
    };
    const Type type(ElemKind::Int64, Shape{c.updates});
    b.output("y", b.scatter(input("data", c.rows), b.input("indices", type), input("updates", c.updates),
                            {.reduction = c.reduction}));
    NamedTensors bindings = testing_support::randomBindings(rng, b.function());
    bindings.insert_or_assign("indices", Tensor::of(type, indices));
    auto expected = evaluateFunction(b.function(), bindings);
    ASSERT_TRUE(expected.ok()) << expected.error().text();
    auto executable = compiled(b.function());
    ASSERT_TRUE(executable.ok()) << executable.error().text();
    auto bound = bindByName((*executable)->inputs(), {bindings.begin(), bindings.end()});
    for (int run = 0; run < 2; ++run) {
      auto results = (*executable)->run(*bound);
      ASSERT_TRUE(results.ok()) << results.error().text();
      EXPECT_EQ(results->at(0).doubles(), expected->at(0).doubles());
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, IndexKernels, ::testing::Bool(), OnBoth::nameOf);

TEST_P(IndexKernels, CombineUpdatesOfEachRowInTheirOrder) {
  const auto any = [](int64_t rows) { return [rows](Rng& rng, int64_t) { return rng.between(0, rows - 1); }; };
  const Case cases[] = {
      {1, 70, 3, any(1)},
      {5, 1, 2, any(5)},
      {16, 300, 1, any(16)},
      {17, 3000, 2, any(17)},
      {300, 40, 130, any(300)},
      {3, 0, 4, any(3)},
      {90, 500, 3, any(90), ElemKind::Float16, "mul"},
      {90, 500, 3, any(90), ElemKind::Int8, "add"},
      {90, 500, 65, any(90), ElemKind::Float32, "max"},
      {90, 500, 1, any(90), ElemKind::UInt64, "min"},
  };
  for (const Case& c : cases) expectBits(c);
}

// All different, all alike, and most of them in a few rows.
TEST_P(IndexKernels, CombineManyUpdates) {
  const Case cases[] = {
      {70000, 70000, 1, [](Rng&, int64_t i) { return i * 7919 % 70000; }},
      {70000, 40000, 1, [](Rng&, int64_t) { return 66000; }},
      {70000, 50000, 1, [](Rng& rng, int64_t) { return int64_t{1} << rng.between(0, 16); }},
  };
  for (const Case& c : cases) expectBits(c);
}

// Portable C has neither groups nor waits.
TEST(ScatterKernels, NeedNoOthersWhereAnItemIsAlone) {
  Module module;
  Builder b(*module.addFunction("f"));
  const Value data = b.input("data", Type(ElemKind::Float32, Shape{300, 100}));
  const Value updates = b.input("updates", Type(ElemKind::Float32, Shape{500, 100}));
  b.output("y", b.scatter(data, b.input("indices", Type(ElemKind::Int64, Shape{500})), updates, {.reduction = "add"}));
  auto program = generate(b.function());
  ASSERT_TRUE(program.ok()) << program.error().text();
  const auto scatter = std::find_if(program->instrs.begin(), program->instrs.end(), [](const Instr& instr) {
    return instr.kind == Instr::Kind::Compute && opOf(instr.attrs.op()) == Op::Scatter;
  });
  ASSERT_NE(scatter, program->instrs.end());
  const codegen::DeviceShape shape{.groupItems = 1, .vectors = false};
  const Type bytes(ElemKind::UInt8, Shape{scratchBytes(*program, *scatter, shape)});
  scatter->operands.push_back(
      {program->add({.name = "scratch", .type = bytes, .source = Allocated{}}), Access::Scratch});
  for (const codegen::Launch& launch : launchesOf(*program, *scatter, shape)) {
    EXPECT_EQ(launch.text.find("BARRIER"), std::string::npos) << launch.text;
    EXPECT_EQ(launch.text.find("LOCAL_ITEM"), std::string::npos) << launch.text;
  }
}

}  // namespace

}  // namespace aglow
