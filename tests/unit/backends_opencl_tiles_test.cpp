// Products and convolutions by tiles that a group shares, as GPUs get them, on whatever device there is, against the
// reference; and how large those tiles are.
#include "codegen/clike/tile_plan.h"

#include "backends/cpu/layout/layout.h"
#include "backends/device/narrow_operands.h"
#include "inst/text.h"
#include "on_device.h"
#include "optimize/passes.h"

namespace aglow {

namespace {

using codegen::DeviceShape;
using codegen::GroupTile;
using codegen::ProductSizes;

constexpr DeviceShape kLarge{.sharesLocal = true,
                             .groupItems = 1024,
                             .localBytes = 48 << 10,
                             .computeUnits = 132,
                             .multipliesHalves = true,
                             .copiesAhead = true};

class Tiles : public OnDevice {
protected:
  void SetUp() override {}  // each test chooses

  // A device with one unit has large tiles, one with many small tiles and parts of sums.
  void chooseUnits(int64_t units) {
    DeviceShape shape = kLarge;
    shape.computeUnits = units;
    choose(shape);
  }
  static Value input(Builder& b, const char* name, Shape shape, ElemKind kind = ElemKind::Float32) {
    return b.input(name, Type(kind, std::move(shape)));
  }
};

TEST_F(Tiles, MultiplyMatricesOfAnyKindAndSize) {
  struct Case {
    int64_t units;
    Shape a, b;
    ElemKind kind = ElemKind::Float32;
  };
  const Case cases[] = {
      {1, {2, 70, 36}, {36, 132}},
      {132, {3, 9, 19}, {3, 19, 33}},
      {132, {1, 700}, {700, 20}},
      {132, {20, 24}, {24, 40}, ElemKind::Int32},
  };
  uint64_t seed = 1;
  for (const Case& c : cases) {
    SCOPED_TRACE(seed);
    chooseUnits(c.units);
    if (IsSkipped()) return;
    Module module;
    Builder b(*module.addFunction("f"));
    const Value y = b.matMul(input(b, "a", c.a, c.kind), input(b, "b", c.b, c.kind));
    const Value shifted = b.add(y, input(b, "shift", {y.dim(y.rank() - 1)}, c.kind));
    b.output("y", b.add(b.neg(shifted), input(b, "other", y.shape(), c.kind)));
    expectSame(b.function(), ++seed, false);
  }
}

TEST_F(Tiles, ConvolveAllImagesAtOnce) {
  struct Case {
    int64_t units;
    Shape x, filter;
    ConvAttrs attrs;
  };
  const Case cases[] = {
      {132, {2, 24, 8, 6}, {40, 24, 1, 1}, {}},
      {132, {2, 6, 9, 11}, {8, 3, 3, 3}, {.strides = {2, 1}, .pads = {1, 0, 1, 2}, .group = 2}},
      {1, {2, 5, 30}, {12, 5, 4}, {.strides = {2}, .pads = {1, 2}, .dilations = {1}}},
  };
  uint64_t seed = 1;
  for (const Case& c : cases) {
    SCOPED_TRACE(seed);
    chooseUnits(c.units);
    if (IsSkipped()) return;
    Module module;
    Builder b(*module.addFunction("f"));
    const Value y = b.conv(input(b, "x", c.x), input(b, "filter", c.filter), input(b, "bias", {c.filter[0]}), c.attrs);
    b.output("y", b.relu(b.add(y, input(b, "other", y.shape()))));
    expectSame(b.function(), ++seed, false);
  }
}

class Products : public OnBoth {};
INSTANTIATE_TEST_SUITE_P(Devices, Products, ::testing::Bool(), OnBoth::nameOf);

// Operands have nothing to load then, whatever there is of results; images of zeros alone are padding.
TEST_P(Products, SumNothing) {
  Module module;
  Builder b(*module.addFunction("f"));
  const auto input = [&](const char* name, Shape shape, ElemKind kind = ElemKind::Float32) {
    return b.input(name, Type(kind, std::move(shape)));
  };
  const auto finish = [&](const char* name, Value y, const char* other) {
    b.output(name, b.neg(b.add(y, input(other, y.shape(), y.type().kind()))));
  };
  finish("matrices", b.matMul(input("a", {64, 0}, ElemKind::Float16), input("b", {0, 300}, ElemKind::Float16)), "r");
  finish("many", b.matMul(input("c", {2, 3, 5, 0}), input("d", {3, 0, 7})), "s");
  finish("channels",
         b.conv(input("x", {2, 0, 5, 6}), input("w", {8, 0, 3, 3}), input("bias", {8}), {.pads = {1, 1, 0, 0}}), "t");
  finish("few", b.conv(input("u", {2, 0, 5, 6}), input("o", {2, 0, 3, 3}), input("p", {2}), {}), "v");
  finish(
      "padding",
      b.conv(input("e", {2, 4, 0, 6}), input("g", {8, 2, 2, 3}), input("h", {8}), {.pads = {1, 0, 2, 0}, .group = 2}),
      "i");
  expectSame(b.function(), 3, false);
}

// Products of i32 that are bytes less an offset, known or computed, moved or not: the kernels read the bytes.
TEST_F(Tiles, WidenBytesWhileTheyLoadThem) {
  for (const bool groups : {true, false})
    for (const ElemKind kind : {ElemKind::UInt8, ElemKind::Int8}) {
      choose(groups ? kLarge : kOfItems);
      if (IsSkipped()) return;
      Module module;
      Builder b(*module.addFunction("f"));
      const auto wide = [&](const char* name, Shape shape, double offset) {
        const Value bytes = b.casted(input(b, name, std::move(shape), kind), ElemKind::Int32);
        return offset == 0 ? bytes : b.sub(bytes, b.scalar(ElemKind::Int32, offset));
      };
      Rng rng(5);
      const auto known = [&](Shape shape, int64_t least) {
        std::vector<int64_t> numbers(static_cast<size_t>(shape.elements()));
        for (int64_t& number : numbers) number = rng.between(least, least + 255);
        return b.constant(Tensor::fromInts(Type(ElemKind::Int32, std::move(shape)), numbers));
      };
      const Value x = wide("x", {2, 20, 24}, 9);
      b.output("known", b.relu(b.matMul(x, known({24, 40}, -128))));
      b.output("unsigned", b.matMul(x, known({24, 7}, -37)));
      b.output("computed", b.matMul(x, wide("w", {24, 36}, 0)));
      b.output("moved", b.matMul(x, b.transpose(wide("t", {2, 12, 24}, 3), {.perm = {0, 2, 1}})));
      const Value image = wide("i", {2, 6, 7, 9}, 100);
      b.output("conv", b.conv(image, known({8, 3, 3, 3}, -130), input(b, "bias", {8}, ElemKind::Int32),
                              {.pads = {1, 0, 1, 2}, .group = 2}));
      b.output("single", b.conv(image, known({6, 1, 3, 3}, -128), {}, {.pads = {1, 1, 1, 1}, .group = 6}));
      b.output("points", b.conv(wide("j", {1, 8, 4, 4}, 1), wide("k", {12, 8, 1, 1}, 2), {}, {}));

      ReferenceEvaluator evaluator;
      PassContext context{.evaluator = evaluator};
      const NamedTensors bindings = testing_support::randomBindings(rng, b.function(), false);
      const auto expected = evaluateFunction(b.function(), bindings);
      auto changed = device::narrowOperandsPass().run(b.function(), context);
      ASSERT_TRUE(changed.ok()) << changed.error().text();
      ASSERT_TRUE(deadCodePass().run(b.function(), context).ok());
      const std::string text = print(module);
      EXPECT_EQ(text.find("MatMul(") - text.find("ByteMatMul("), 4) << text;
      EXPECT_EQ(text.find("Cast("), std::string::npos) << text;
      EXPECT_NE(text.find("transposed = true"), std::string::npos) << text;
      const auto same = evaluateFunction(b.function(), bindings);
      ASSERT_TRUE(expected.ok() && same.ok());
      for (size_t i = 0; i < expected->size(); ++i) EXPECT_EQ((*expected)[i], (*same)[i]) << i;
      expectSame(b.function(), 3, false);
    }
}

// Weights of bytes are made words when compiling, where kernels do not widen them: no run does.
TEST_F(Tiles, FoldWeightsOfBytesOnProcessors) {
  choose({});
  if (IsSkipped() || backend_->shape().sharesLocal) return;
  auto module = parseModule(
      "module { placeholder @x : i32[4,512] placeholder @y : i32[4,512] constant @w : i8[512,512] = splat 3\n"
      "func @main { %w = Cast(@w) {to = i32} %m = MatMul(@x, %w) %s = Save(%m, @y) } }");
  ASSERT_TRUE(module.ok()) << module.error().text();
  CompileOptions options;
  options.backend = "opencl:" + backend_->device().address();
  auto compilation = compileModule(*std::move(module), options);
  ASSERT_TRUE(compilation.ok());
  EXPECT_EQ(print(compilation->programs.front()).find("Cast "), std::string::npos);
}

// Channels by themselves come to local memory once, with one kernel and without working memory.
TEST(GroupKernels, KeepRowsOfChannelsInLocalMemory) {
  const std::pair<Shape, Shape> cases[] = {
      {{2, 8, 40, 40}, {8, 1, 7, 7}}, {{2, 8, 300}, {8, 1, 31}}, {{1, 8, 9, 20, 24}, {8, 1, 3, 3, 3}}};
  for (const auto& [x, filter] : cases) {
    Module module;
    Builder b(*module.addFunction("f"));
    const auto input = [&](const char* name, const Shape& shape) {
      return b.input(name, Type(ElemKind::Float32, shape));
    };
    b.output("y", b.conv(input("x", x), input("filter", filter), {}, {.group = 8}));
    auto program = generate(b.function());
    ASSERT_TRUE(program.ok()) << program.error().text();
    for (const Instr& instr : program->instrs)
      if (instr.kind == Instr::Kind::Compute && instr.attrs.op().name == std::string_view("Conv")) {
        const std::vector<codegen::Launch> launches = launchesOf(*program, instr, kLarge);
        ASSERT_EQ(launches.size(), 1u);
        EXPECT_NE(launches[0].text.find("LOCAL_ARRAY float lines"), std::string::npos) << x.text();
      }
  }
}

constexpr ElemKind kHalf = ElemKind::Float16;

// Numbers of few bits, whose products and sums no rounding touches.
class HalfTiles : public Tiles {
protected:
  static Tensor small(Rng& rng, const Type& type) {
    std::vector<double> numbers(static_cast<size_t>(type.elements()));
    for (double& number : numbers) number = static_cast<double>(rng.between(-4, 4));
    return Tensor::of(type, numbers);
  }

  static NamedTensors bindingsOf(const Function& function) {
    Rng rng(7);
    NamedTensors bindings;
    for (Placeholder* place : function.module().placeholders())
      if (place->name() != "y") bindings.emplace(place->name(), small(rng, place->type()));
    return bindings;
  }

  static std::vector<double> resultOf(Executable& executable, const NamedTensors& bindings) {
    auto bound = bindByName(executable.inputs(), {bindings.begin(), bindings.end()});
    auto results = executable.run(*bound);
    EXPECT_TRUE(results.ok()) << results.error().text();
    return results.ok() ? results->at(0).doubles() : std::vector<double>();
  }

  void expect(const Builder& b) const {
    const NamedTensors bindings = bindingsOf(b.function());
    auto expected = evaluateFunction(b.function(), bindings);
    ASSERT_TRUE(expected.ok()) << expected.error().text();
    auto executable = compiled(b.function());
    ASSERT_TRUE(executable.ok()) << executable.error().text();
    EXPECT_EQ(resultOf(**executable, bindings), expected->at(0).doubles());
  }
};

TEST_F(HalfTiles, MultiplyTogether) {
  chooseUnits(132);
  if (IsSkipped()) return;
  {
    Module module;
    Builder b(*module.addFunction("f"));
    const Value y = b.matMul(input(b, "a", {2, 20, 40}, kHalf), input(b, "w", {40, 72}, kHalf));
    b.output("y", b.relu(b.add(y, input(b, "s", {72}, kHalf))));
    expect(b);
  }
  Module module;
  Builder b(*module.addFunction("f"));
  const Value y = b.conv(input(b, "x", {2, 6, 5, 7}, kHalf), input(b, "w", {20, 6, 3, 3}, kHalf),
                         input(b, "s", {20}, kHalf), {.pads = {1, 1, 1, 1}});
  b.output("y", b.relu(b.add(y, input(b, "r", y.shape(), kHalf))));
  expect(b);
}

TEST_F(HalfTiles, ConvolveChannelsThatLieSideBySide) {
  struct Case {
    int64_t units;
    Shape x, filter;
    ChannelsLastConvAttrs attrs;
  };
  const Case cases[] = {
      {132, {2, 1, 8, 6, 24}, {40, 1, 1, 24}, {}},
      {1, {2, 1, 9, 11, 8}, {20, 3, 3, 8}, {.strides = {2, 1}, .pads = {1, 0, 1, 2}}},
      {132, {1, 1, 9, 7, 16}, {9, 3, 2, 16}, {.pads = {1, 1, 1, 1}, .dilations = {2, 1}}},
      {132, {1, 1, 5, 5, 64}, {64, 3, 3, 64}, {.pads = {1, 1, 1, 1}}},  // parts of sums
      {132, {2, 1, 9, 9, 12}, {16, 2, 2, 12}, {}},                      // vectors of four
      {1, {1, 3, 17, 15}, {16, 7, 7, 3}, {.strides = {2, 2}, .pads = {3, 3, 3, 3}}},
      {132, {2, 4, 6, 6}, {8, 3, 3, 4}, {}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.x.text() + " by " + c.filter.text());
    chooseUnits(c.units);
    if (IsSkipped()) return;
    Module module;
    Builder b(*module.addFunction("f"));
    const Value y = b.channelsLastConv(input(b, "x", c.x, kHalf), input(b, "w", c.filter, kHalf),
                                       input(b, "s", {c.filter[0]}, kHalf), c.attrs);
    ASSERT_TRUE(backend_->supports(*y.node)) << backend_->supports(*y.node).reason();
    b.output("y", b.relu(b.add(y, input(b, "r", y.shape(), kHalf))));
    expect(b);
  }
}

// A network with what stands between convolutions: all of it has its channels side by side, but for the image.
TEST_F(HalfTiles, LayChannelsSideBySide) {
  chooseUnits(132);
  if (IsSkipped()) return;
  Rng rng(3);
  auto module = std::make_unique<Module>();
  Builder b(*module->addFunction("main"));
  const auto known = [&](Shape shape) { return b.constant(small(rng, Type(kHalf, std::move(shape)))); };
  const Value image = input(b, "x", {1, 3, 34, 34}, kHalf);
  Value x = b.relu(b.conv(image, known({16, 3, 7, 7}), known({16}), {.strides = {2, 2}, .pads = {3, 3, 3, 3}}));
  x = b.maxPool(x, {.kernel = {3, 3}, .strides = {2, 2}, .pads = {1, 1, 1, 1}});
  x = b.clip(x, b.scalar(kHalf, -4), b.scalar(kHalf, 4));
  const Value one = b.clip(b.conv(x, known({16, 16, 1, 1}), {}, {}), b.scalar(kHalf, -4), b.scalar(kHalf, 4));
  const Value two = b.conv(one, known({24, 16, 3, 3}), known({24}), {.pads = {1, 1, 1, 1}});
  const Value both = b.concat({b.clip(two, b.scalar(kHalf, -4), b.scalar(kHalf, 4)), x}, {.axis = 1});
  const Value part = b.slice(both, {.starts = {0, 3, 0, 0}, .sizes = {1, 32, 9, 9}});
  const Value last = b.conv(part, known({8, 32, 1, 1}), known({8}), {});
  b.output("y", b.reduce(last, {.kind = "max", .axes = {2, 3}, .keepdims = false}));
  const NamedTensors bindings = bindingsOf(b.function());
  auto expected = evaluateFunction(b.function(), bindings);
  ASSERT_TRUE(expected.ok()) << expected.error().text();

  ReferenceEvaluator evaluator;
  PassContext context{.evaluator = evaluator};
  auto changed = blockedLayoutPass({.whole = true}).run(b.function(), context);
  ASSERT_TRUE(changed.ok()) << changed.error().text();
  int convs = 0, planar = 0, moved = 0;
  for (const auto& node : b.function().nodes()) {
    convs += node->op() == Op::ChannelsLastConv ? 1 : 0;
    planar += node->op() == Op::Conv ? 1 : 0;
    moved += node->op() == Op::Transpose ? 1 : 0;
  }
  EXPECT_EQ(convs, 4);
  EXPECT_EQ(planar + moved, 0) << print(*module);
  auto executable = compiled(b.function());
  ASSERT_TRUE(executable.ok()) << executable.error().text();
  EXPECT_EQ(resultOf(**executable, bindings), expected->at(0).doubles());
}

// CUDA has no more than 65535 groups in dimensions after the first, and a group of one item leaves the others of a GPU
// idle.
TEST_F(Tiles, HaveGroupsThatEveryDeviceTakes) {
  DeviceShape pairs = kLarge;
  pairs.pairs = true;
  for (const ElemKind kind : {ElemKind::Float32, ElemKind::Float64}) {
    Module module;
    Builder b(*module.addFunction("f"));
    b.output("y", b.matMul(input(b, "a", {70000, 4, 4}, kind), input(b, "b", {70000, 4, 4}, kind)));
    auto program = generate(b.function());
    ASSERT_TRUE(program.ok()) << program.error().text();
    for (const Instr& instr : program->instrs) {
      if (instr.kind != Instr::Kind::Compute) continue;
      for (const codegen::Launch& launch : codegen::launchesOf(*program, instr, pairs)) {
        EXPECT_EQ(launch.items[1], launch.group[1]);
        EXPECT_GE(launch.group[0] * launch.group[1], pairs.stepItems);
      }
    }
    choose(kLarge);
    if (IsSkipped()) return;
    expectSame(b.function(), 3, false);
  }
}

TEST(TilePlan, FillsTheDeviceAndFitsIntoLocalMemory) {
  // Many results: large tiles, whole sums.
  const GroupTile wide = chooseTile({.m = 1024, .n = 25088, .k = 256}, kLarge, true);
  EXPECT_EQ(wide.parts, 1);
  EXPECT_GE(wide.rows * wide.columns, 64 * 128);
  // Few, of long sums: parts, for each unit something to do.
  const ProductSizes deep{.m = 512, .n = 392, .k = 4608};
  const GroupTile cut = chooseTile(deep, kLarge, true);
  EXPECT_GT(cut.partCount(deep), 1);
  EXPECT_EQ(partBytes(deep, cut), cut.partCount(deep) * 512 * 392 * 4);
  EXPECT_EQ(chooseTile(deep, kLarge, false).parts, 1);
  for (const int64_t bytes : {16 << 10, 32 << 10, 48 << 10})
    for (const ElemKind kind : {ElemKind::Float32, ElemKind::Float64}) {
      DeviceShape shape = kLarge;
      shape.localBytes = bytes;
      EXPECT_LE(chooseTile({.m = 4096, .n = 4096, .k = 4096, .held = kind, .sums = kind}, shape, true).localBytes(kind),
                bytes);
    }
}

}  // namespace

}  // namespace aglow
