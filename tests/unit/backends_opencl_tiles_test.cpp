// Products and convolutions by tiles that a group shares, as GPUs get them, on whatever device there is, against the
// reference; and how large those tiles are.
#include "codegen/clike/tile_plan.h"
#include "on_device.h"

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

// Numbers of few bits, whose products and sums no rounding touches.
TEST_F(Tiles, MultiplyHalvesTogether) {
  chooseUnits(132);
  if (IsSkipped()) return;
  const auto expect = [&](Builder& b) {
    Rng rng(7);
    NamedTensors bindings;
    for (Placeholder* place : b.function().module().placeholders()) {
      if (place->name() == "y") continue;
      std::vector<double> numbers(static_cast<size_t>(place->type().elements()));
      for (double& number : numbers) number = static_cast<double>(rng.between(-4, 4));
      bindings.emplace(place->name(), Tensor::of(place->type(), numbers));
    }
    auto expected = evaluateFunction(b.function(), bindings);
    ASSERT_TRUE(expected.ok()) << expected.error().text();
    auto executable = compiled(b.function());
    ASSERT_TRUE(executable.ok()) << executable.error().text();
    auto bound = bindByName((*executable)->inputs(), {bindings.begin(), bindings.end()});
    auto results = (*executable)->run(*bound);
    ASSERT_TRUE(results.ok()) << results.error().text();
    EXPECT_EQ(results->at(0).doubles(), expected->at(0).doubles());
  };
  constexpr ElemKind kHalf = ElemKind::Float16;
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
