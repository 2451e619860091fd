// Reductions as processors and as GPUs get them, against the reference: over any axes, of many and of few results,
// whole and in parts; and how they are cut.
#include "codegen/clike/reductions.h"

#include <regex>

#include "backends/device/fuse_policy.h"
#include "on_device.h"

namespace aglow {

namespace {

using codegen::DeviceShape;
using codegen::ReductionCut;

// A GPU with many units, for which nothing here is large.
constexpr DeviceShape kWide{.sharesLocal = true, .groupItems = 256, .localBytes = 48 << 10, .computeUnits = 132};

class Reductions : public OnBoth {
protected:
  void SetUp() override {
    DeviceShape shape = GetParam() ? kWide : kOfItems;
    shape.computeUnits = 132;
    choose(shape);
  }

  template <class Make>
  void expectEach(const Shape& shape, ElemKind kind, bool specials, Make&& make) {
    SCOPED_TRACE(fmt::format("{} {}", Type(kind, shape).text(), specials ? "with specials" : ""));
    Module module;
    Builder b(*module.addFunction("f"));
    make(b, b.input("x", Type(kind, shape)));
    expectSame(b.function(), 5, specials);
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, Reductions, ::testing::Bool(), OnBoth::nameOf);

struct Reduced {
  Shape shape;
  std::vector<int64_t> axes;
};

TEST_P(Reductions, OverAnyAxes) {
  const Reduced cases[] = {{{9000, 3}, {0}},      {{5000, 40}, {0}},  {{70, 5, 33, 3}, {0, 2}}, {{40, 3, 90}, {0, 2}},
                           {{3, 300, 7}, {1}},    {{70000}, {0}},     {{2, 9000}, {1}},         {{5, 3, 4}, {0}},
                           {{300, 1, 2}, {0, 1}}, {{0, 4}, {0}},      {{4, 0, 3}, {1}},         {{0, 4, 3}, {1}},
                           {{700, 2, 2}, {1}},    {{1, 5, 1}, {0, 2}}};
  bool keeps = false;
  for (const Reduced& c : cases)
    expectEach(c.shape, ElemKind::Float32, false, [&](Builder& b, Value x) {
      keeps = !keeps;
      b.output("y", b.neg(b.reduce(x, {.kind = keeps ? "mean" : "sum", .axes = c.axes, .keepdims = keeps})));
    });
}

TEST_P(Reductions, OfAnyKind) {
  for (const auto& [kind, how] :
       {std::pair(ElemKind::Float16, "sum"), std::pair(ElemKind::Float64, "mean"), std::pair(ElemKind::UInt8, "max"),
        std::pair(ElemKind::Int64, "prod"), std::pair(ElemKind::Float32, "min"), std::pair(ElemKind::BFloat16, "mean")})
    for (const Shape& shape : {Shape{6000, 3}, Shape{2, 40000}})
      expectEach(shape, kind, isFloat(kind), [&](Builder& b, Value x) {
        b.output("y", b.reduce(x, {.kind = how, .axes = {shape[0] == 2 ? 1 : 0}}));
      });
}

// What lies just above the middle between two f16, where it would lie if it were rounded to f32 first.
TEST_P(Reductions, AreRoundedOnce) {
  Module module;
  Builder b(*module.addFunction("f"));
  const auto constant = [&](const std::vector<double>& values) {
    return b.constant(Tensor::fromDoubles(Type(ElemKind::Float16, Shape{1, 1, 3, 2}), values));
  };
  const Value x = constant({2048, 2048, 1, 1, 0x1p-14, 0x1p-14}), y = constant({6144, 6144, 3, 3, 0x1p-12, 0x1p-12});
  b.output("sum", b.reduce(x, {.axes = {2}}));
  b.output("mean", b.reduce(y, {.kind = "mean", .axes = {2}}));
  b.output("pool", b.avgPool(y, {.kernel = {3, 1}}));
  const auto executable = compiled(b.function());
  ASSERT_TRUE(executable.ok()) << executable.error().text();
  const auto results = (*executable)->run({});
  ASSERT_TRUE(results.ok()) << results.error().text();
  for (const Tensor& result : *results) EXPECT_EQ(result.doubles(), (std::vector<double>{2050, 2050}));
}

TEST_P(Reductions, OfWhatIsComputedFirst) {
  for (const Shape& shape : {Shape{70000}, Shape{3, 20000}, Shape{2, 100, 300}})
    expectEach(shape, ElemKind::Float32, false, [&](Builder& b, Value x) {
      std::vector<int64_t> axes;
      for (int64_t axis = shape.rank() == 1 ? 0 : 1; axis < shape.rank(); ++axis) axes.push_back(axis);
      const Value sum = b.reduce(b.mul(x, x), {.kind = "mean", .axes = axes, .keepdims = false});
      b.output("root", b.sqrt(sum));
      b.output("most", b.reduce(b.abs(x), {.kind = "max", .axes = axes, .keepdims = false}));
    });
}

// Of one value each, which is computed once for the row.
TEST_P(Reductions, OfRowsOfOneValue) {
  for (const int64_t length : {2, 3, 8, 64, 100, 4096, 20000})
    expectEach({5, 1}, ElemKind::Float32, false, [&](Builder& b, Value input) {
      const std::vector<int64_t> shape{5, length};
      const Value x = b.neg(input);
      const Value most = b.reduce(b.expand(x, {.shape = shape}), {.kind = "max", .axes = {1}});
      const Value weight = b.exp(b.sub(x, most));
      const Value sum = b.reduce(b.expand(weight, {.shape = shape}), {.kind = "sum", .axes = {1}});
      b.output("y", b.expand(b.div(weight, sum), {.shape = shape}));
    });
}

// Several rows in a group, also where the last group has fewer, and where one item has a row.
TEST_P(Reductions, OfShortRows) {
  for (const auto& [rows, length] : {std::pair(1056, 8), std::pair(817, 3), std::pair(1000, 12), std::pair(999, 33),
                                     std::pair(531, 4), std::pair(600, 2), std::pair(1601, 7), std::pair(299, 100)})
    expectEach({rows, length}, ElemKind::Float32, rows == 817, [](Builder& b, Value x) {
      const Value most = b.reduce(x, {.kind = "max", .axes = {1}});
      const Value weights = b.exp(b.sub(x, most));
      const Value sum = b.reduce(weights, {.kind = "sum", .axes = {1}});
      b.output("y", b.div(weights, sum));
      b.output("sum", sum);
      b.output("most", b.neg(most));
    });
}

// What is stored once for a row takes the place of what all of its items have read.
TEST_P(Reductions, OfRowsInPlace) {
  for (const auto& [rows, length] : {std::pair(1, 3), std::pair(5, 33), std::pair(3, 300)})
    expectEach({rows, length}, ElemKind::Float32, false, [&, of = rows](Builder& b, Value x) {
      const Value known = b.reduce(b.input("z", Type(ElemKind::Float32, {of, 7})), {.kind = "sum", .axes = {1}});
      const Value scaled = b.mul(known, b.reduce(x, {.kind = "max", .axes = {1}}));
      b.output("scaled", scaled);
      b.output("y", b.sub(x, scaled));
    });
}

// So many sums of one row, alone or with what is made of the row with them; or of several kinds by turns.
void addManySums(Builder& b, Value x, int sums, bool whole, bool mixed) {
  const int64_t last = x.type().shape().rank() - 1;
  const Value kept = b.exp(x);
  std::vector<Value> all;
  for (int i = 0; i < sums; ++i) {
    Value scaled = b.mul(kept, b.splat({.value = 1 + 0.5 * i, .shape = x.type().shape().dims()}));
    if (mixed && i % 3 != 0) scaled = b.cast(scaled, {.to = i % 3 == 1 ? ElemKind::Float64 : ElemKind::Int32});
    const Value sum = b.reduce(scaled, {.kind = i % 2 == 0 ? "sum" : "max", .axes = {last}});
    all.push_back(mixed ? b.cast(sum, {.to = ElemKind::Float32}) : sum);
  }
  Value together = all[0];
  for (size_t i = 1; i < all.size(); ++i) together = b.add(together, all[i]);
  b.output("y", whole ? b.sub(kept, together) : together);
}

// More sums than half of local memory has room for at once.
TEST_P(Reductions, OfManySums) {
  DeviceShape shape = GetParam() ? kWide : kOfItems;
  shape.localBytes = 16 << 10;
  choose(shape);
  for (const Shape& rows : {Shape{3, 301}, Shape{2, 2048}, Shape{700, 20}})
    for (const bool whole : {false, true})
      for (const bool mixed : {false, true})
        expectEach(rows, ElemKind::Float32, false, [&](Builder& b, Value x) { addManySums(b, x, 9, whole, mixed); });
}

TEST_P(Reductions, ToTheBestPlace) {
  const std::tuple<Shape, int64_t, ElemKind> cases[] = {
      {{70000}, 0, ElemKind::Float32}, {{20000, 3}, 0, ElemKind::Float32},  {{4, 9000}, 1, ElemKind::Float64},
      {{300, 7}, 1, ElemKind::Int8},   {{40, 5, 50}, 1, ElemKind::Float32}, {{3, 20000}, 1, ElemKind::Int64}};
  for (const auto& [shape, axis, kind] : cases)
    expectEach(shape, kind, isFloat(kind), [&, by = axis](Builder& b, Value x) {
      b.output("max", b.argReduce(x, {.kind = "max", .axis = by, .keepdims = false, .last = true}));
      b.output("min", b.argReduce(x, {.kind = "min", .axis = by, .keepdims = true}));
    });
}

TEST_P(Reductions, OfWhatIsObserved) {
  for (const auto& [shape, axis] :
       {std::pair(Shape{3, 5, 4000}, 1), std::pair(Shape{70000, 3}, 1), std::pair(Shape{40, 3000}, 0)})
    expectEach(shape, ElemKind::Float32, axis == 1, [&](Builder& b, Value x) {
      Node* node =
          b.observe(b.input("counts", Type(ElemKind::Int64, {514})),
                    b.input("channels", Type(ElemKind::Float64, {4, shape[axis]})), x, {.axis = axis, .stepBits = 2});
      b.output("counts_now", node->result(0));
      b.output("channels_now", node->result(1));
    });
}

// Items enough for all units, and no second kernel where one is quick.
TEST(ReductionCuts, GoByTheDevice) {
  const auto cut = [](int64_t results, int64_t points, int64_t beside) {
    return codegen::reductionCut({.results = results, .points = points, .beside = beside}, kWide);
  };
  const auto items = [](const ReductionCut& c, int64_t results) { return results * c.deep * c.parts; };
  EXPECT_GE(items(cut(4, 1 << 20, 4), 4), 132 * 256);
  EXPECT_GE(items(cut(1, 1 << 26, 1), 1), 132 * 1024);
  EXPECT_GE(items(cut(64, 100000, 1), 64), 132 * 256);
  EXPECT_GE(items(cut(768, 1024, 768), 768), 132 * 256);
  EXPECT_EQ(cut(1, 4096, 1).parts, 1);
  EXPECT_EQ(cut(1 << 20, 4, 4).items(), 1);
  EXPECT_EQ(cut(1 << 20, 4000, 1 << 20).parts, 1);
  const ReductionCut narrow = cut(4, 1 << 20, 4);  // neighbouring items read neighbouring addresses
  EXPECT_EQ(narrow.across, 4);
  EXPECT_EQ(narrow.items(), 256);
}

// What rows keep and what their sums need, of the widest kinds, too.
TEST(ReductionCuts, FitLocalMemory) {
  static const std::regex kArrays(R"(LOCAL_ARRAY (\w+) \w+\[(\d+)\])");
  const std::map<std::string, int64_t> bytes{{"float", 4},      {"int32_t", 4},  {"uint32_t", 4}, {"f64", 8},
                                             {"stored_f64", 8}, {"uint64_t", 8}, {"int64_t", 8}};
  for (const int64_t local : {16 << 10, 32 << 10, 48 << 10})
    for (const int64_t length : {301, 2001, 4001, 4096, 6001})
      for (const int sums : {1, 12, 20})
        for (const bool whole : {false, true}) {
          SCOPED_TRACE(fmt::format("{} sums of {}, {} bytes", sums, length, local));
          DeviceShape shape = kWide;
          shape.localBytes = local;
          shape.computeUnits = 8;
          Module module;
          Builder b(*module.addFunction("f"));
          addManySums(b, b.input("x", Type(ElemKind::Float32, {2, length})), sums, whole, length == 301);
          Result<Program> program = generate(b.function());
          ASSERT_TRUE(program.ok());
          ASSERT_TRUE(fuseInstructions(*program, device::DeviceFusePolicy(shape)).ok());
          for (const Instr& instr : program->instrs) {
            if (instr.kind != Instr::Kind::Compute && instr.kind != Instr::Kind::Fused) continue;
            for (const codegen::Launch& launch : codegen::launchesOf(*program, instr, shape)) {
              int64_t all = 0;
              for (std::sregex_iterator it(launch.text.begin(), launch.text.end(), kArrays), end; it != end; ++it)
                all += bytes.at((*it)[1]) * std::stoll((*it)[2]);
              EXPECT_LE(all, local);
            }
          }
        }
}

TEST(ReductionCuts, PackShortRows) {
  const auto launches = [](const Shape& shape) {
    Module module;
    Builder b(*module.addFunction("f"));
    b.output("y", b.reduce(b.input("x", Type(ElemKind::Float32, shape)), {.kind = "sum", .axes = {1}}));
    auto program = generate(b.function());
    std::vector<codegen::Launch> all;
    for (const Instr& instr : program->instrs)
      if (instr.kind == Instr::Kind::Compute) all = codegen::launchesOf(*program, instr, kWide);
    return all;
  };
  // Two items of a group for each row of eight.
  ASSERT_EQ(launches({1 << 20, 8}).size(), 1U);
  EXPECT_EQ(launches({1 << 20, 8})[0].items[0], 2 << 20);
  EXPECT_EQ(launches({1 << 20, 8})[0].group[0], 128);
  EXPECT_EQ(launches({1 << 20, 3})[0].items[0] / launches({1 << 20, 3})[0].group[0], (1 << 20) / 64);
  EXPECT_EQ(launches({1024, 1024})[0].group[0], 128);
}

}  // namespace

}  // namespace aglow
