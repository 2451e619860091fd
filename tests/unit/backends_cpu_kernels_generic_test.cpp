// The general kernels of the CPU library against the reference kernels: random uses of every operator and kind, and
// shapes that reach past blocks, tiles and vectors. Kernels are written for clang alone.
#ifdef __clang__
// Vectors wider than the machine's only pass between functions that are inlined.
#pragma clang diagnostic ignored "-Wpsabi"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/kernels/conv/general.kernel.cpp"
#include "backends/cpu/kernels/gemm/matmul.kernel.cpp"
#include "backends/cpu/kernels/index/gather.kernel.cpp"
#include "backends/cpu/kernels/index/scatter.kernel.cpp"
#include "backends/cpu/kernels/move/copy.kernel.cpp"
#include "backends/cpu/kernels/move/pad.kernel.cpp"
#include "backends/cpu/kernels/observe/observe.kernel.cpp"
#include "backends/cpu/kernels/pool/avg_pool.kernel.cpp"
#include "backends/cpu/kernels/pool/max_pool.kernel.cpp"
#include "backends/cpu/kernels/pool/rows.kernel.cpp"
#include "backends/cpu/kernels/reduce/reduce.kernel.cpp"
#include "backends/cpu/kernels/reduce/reduce_f32.kernel.cpp"
#include "backends/cpu/kernels/reduce/scan.kernel.cpp"
#include "backends/cpu/kernels/sort/arg_reduce.kernel.cpp"
#include "backends/cpu/kernels/sort/top_k.kernel.cpp"
#include "random_graph.h"
#include "unit/kernels_native.h"

namespace aglow::cpu {
namespace {

using enum ElemKind;
using Ints = std::vector<int64_t>;

#define AGLOW_ENTRY(name) {#name, native(aglow_##name)}
#define AGLOW_WIDTHS(name) AGLOW_ENTRY(name##_w4), AGLOW_ENTRY(name##_w8), AGLOW_ENTRY(name##_w16)
#define AGLOW_DOMAINS(name) AGLOW_ENTRY(name##_f32), AGLOW_ENTRY(name##_f64), AGLOW_ENTRY(name##_i64)
#define AGLOW_PRODUCTS(name) \
  AGLOW_WIDTHS(name##_f32), AGLOW_WIDTHS(name##_f64), AGLOW_WIDTHS(name##_i32), AGLOW_WIDTHS(name##_i64)

const NativeKernels& kernels() {
  static const NativeKernels all{
      AGLOW_ENTRY(copy),
      AGLOW_ENTRY(pad),
      AGLOW_DOMAINS(reduce),
      AGLOW_WIDTHS(reduce_lanes),
      AGLOW_PRODUCTS(matmul),
      AGLOW_PRODUCTS(conv),
      AGLOW_DOMAINS(scan),
      AGLOW_DOMAINS(arg_reduce),
      AGLOW_DOMAINS(top_k),
      AGLOW_DOMAINS(max_pool),
      AGLOW_DOMAINS(max_pool_index),
      AGLOW_ENTRY(avg_pool_f32),
      AGLOW_ENTRY(avg_pool_f64),
      AGLOW_ENTRY(check_indices),
      AGLOW_ENTRY(gather),
      AGLOW_ENTRY(scatter_chains),
      AGLOW_DOMAINS(scatter),
      AGLOW_ENTRY(gather_elements),
      AGLOW_ENTRY(gather_along),
      AGLOW_DOMAINS(scatter_totals),
      AGLOW_DOMAINS(scatter_narrow),
      AGLOW_WIDTHS(scan_lanes),
      AGLOW_WIDTHS(max_rows),
      AGLOW_WIDTHS(mean_rows),
      AGLOW_WIDTHS(observe),
      AGLOW_ENTRY(observed),
  };
  return all;
}

std::vector<KernelRow> rowsOf(Op op) {
  std::vector<KernelRow> rows;
  for (const std::span<const KernelRow> family : {poolRows(), genericRows()})
    for (const KernelRow& row : family)
      if (row.op == op) rows.push_back(row);
  return rows;
}

// How far a result may be away: some units in its last place, and what is lost where large terms cancel.
double tolerance(ElemKind kind, double expected, bool products) {
  if (kind == Float64) return 1e-13 * std::abs(expected) + 1e-12;
  const double step = kind == Float32 ? 0x1p-20 : kind == Float16 ? 0x1p-10 : kind == BFloat16 ? 0x1p-7 : 0.5;
  return step * std::abs(expected) + (products ? 1e-4 : 1e-5);
}

void expectClose(const Tensor& actual, const Tensor& expected, bool products) {
  const ElemKind kind = expected.type().kind();
  if (!isFloat(kind)) {
    EXPECT_EQ(actual, expected) << expected.type().text();
    return;
  }
  const std::vector<double> a = actual.doubles(), e = expected.doubles();
  for (size_t i = 0; i < e.size(); ++i) {
    const bool same = a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i]));
    ASSERT_TRUE(same || std::abs(a[i] - e[i]) <= tolerance(kind, e[i], products))
        << expected.type().text() << " at " << i << ": " << a[i] << ", expected " << e[i];
  }
}

// By the plan of every width of vectors, and by units dealt out in several ways, against the reference.
void check(const Attrs& attrs, const std::vector<Tensor>& in) {
  std::string what(attrs.op().name);
  for (const Tensor& tensor : in) what += " " + (tensor.empty() ? "none" : tensor.type().text());
  SCOPED_TRACE(what);
  const Result<std::vector<Tensor>> expected = runOp(attrs, in);
  std::vector<const Type*> types, results;
  for (const Tensor& tensor : in) types.push_back(tensor.empty() ? nullptr : &tensor.type());
  const Result<std::vector<Type>> out = inferTypes(attrs, types);
  ASSERT_TRUE(out.ok());
  for (const Type& type : *out) results.push_back(&type);
  const Problem problem{attrs, types, results};
  const Op op = opOf(attrs.op());
  const bool products = op == Op::MatMul || op == Op::Conv;
  const std::vector<KernelRow> rows = rowsOf(op);
  std::string known = "none";
  for (size_t i = 0; i < 3 * rows.size(); ++i) {
    const KernelRow& row = rows[i / 3];
    const Machine machine{.lanes = 4 << i % 3};
    if (!row.applies(problem, machine)) {
      ASSERT_LT(i / 3 + 1, rows.size()) << "the general row applies to everything";
      continue;
    }
    const KernelPlan plan = row.plan(problem, machine);
    // Kernels without vectors are the same for every width.
    std::string name;
    for (const KernelStep& step : plan.steps)
      name += step.kernel + std::string(reinterpret_cast<const char*>(step.descriptor.data()), step.descriptor.size());
    if (std::exchange(known, name) == name) continue;
    const NativeRun whole = runPlan(kernels(), plan, problem, in, std::numeric_limits<int64_t>::max());
    ASSERT_EQ(whole.status, expected.ok() ? kDone : kBadIndex);
    if (!expected.ok()) continue;
    for (size_t r = 0; r < whole.out.size(); ++r) expectClose(whole.out[r], (*expected)[r], products);
    EXPECT_EQ(runPlan(kernels(), plan, problem, in, 1).out, whole.out);
    EXPECT_EQ(runPlan(kernels(), plan, problem, in, 3).out, whole.out);
    if (testing::Test::HasFatalFailure()) return;
  }
}

Tensor randomIndices(Random& random, const Type& type, int64_t low, int64_t high) {
  Ints values(static_cast<size_t>(type.elements()));
  for (int64_t& value : values) value = low <= high ? random.between(low, high) : low;
  return Tensor::of(type, values);
}

// So many random uses of an operator.
void checkRandomUses(Op op, int count, uint64_t seed) {
  Random random(seed);
  for (int i = 0; i < count; ++i) {
    const std::optional<OpUse> use = drawUse(random, opDef(op));
    ASSERT_TRUE(use.has_value());
    std::vector<Tensor> in;
    for (const std::optional<Type>& type : use->in) in.push_back(type ? randomTensor(random, *type) : Tensor());
    if (op == Op::Gather || op == Op::Scatter) {
      // Mostly inside of the axis, whose extent decides.
      const int axis = op == Op::Gather ? static_cast<int>(use->attrs.integer("axis")) : 0;
      const int64_t extent = in[0].type().dim(axis);
      in[1] = randomIndices(random, in[1].type(), -extent, random.chance(0.1) ? extent : extent - 1);
    }
    check(use->attrs, in);
    if (testing::Test::HasFailure()) return;
  }
}

Tensor drawn(ElemKind kind, Shape shape, uint64_t seed = 1) {
  Random random(seed);
  return randomTensor(random, Type(kind, std::move(shape)));
}

class RandomUses : public testing::TestWithParam<Op> {};

TEST_P(RandomUses, AgreeWithTheReference) { checkRandomUses(GetParam(), 100, 1); }

INSTANTIATE_TEST_SUITE_P(GenericKernels, RandomUses,
                         testing::Values(Op::Transpose, Op::Slice, Op::Concat, Op::Pad, Op::Reduce, Op::ArgReduce,
                                         Op::Scan, Op::TopK, Op::MatMul, Op::Conv, Op::MaxPool, Op::MaxPoolWithIndices,
                                         Op::AvgPool, Op::Gather, Op::Scatter, Op::Observe),
                         [](const auto& info) { return std::string(opDef(info.param).name); });

TEST(GenericTranspose, PassesTilesAndBlocks) {
  for (const ElemKind kind : {Int8, Float16, Float32, Int64}) {
    check(attrsOf("Transpose").set("perm", Ints{1, 0}), {drawn(kind, {131, 75})});
    check(attrsOf("Transpose").set("perm", Ints{0, 3, 1, 2}), {drawn(kind, {2, 17, 5, 70})});
    check(attrsOf("Transpose").set("perm", Ints{0, 2, 1, 3}), {drawn(kind, {2, 12, 34, 8})});
    check(attrsOf("Transpose").set("perm", Ints{2, 1, 0}), {drawn(kind, {20, 3, 33})});
  }
}

TEST(GenericTranspose, TakesAsManyAxesAsAShapeMayHave) {
  Ints dims(64, 1), perm(64);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i % 5 == 0) dims[i] = 2;
    perm[i] = 63 - static_cast<int64_t>(i);
  }
  check(attrsOf("Transpose").set("perm", perm), {drawn(Int16, Shape(dims))});
  check(attrsOf("Reduce").set("kind", "sum").set("axes", Ints{0, 10, 20, 30, 31}), {drawn(Float32, Shape(dims))});
}

TEST(GenericMoves, TakeLongRows) {
  check(attrsOf("Concat").set("axis", int64_t{0}), {drawn(Int8, {40000}), drawn(Int8, {3}), drawn(Int8, {70000})});
  check(attrsOf("Concat").set("axis", int64_t{1}), {drawn(Int32, {300, 40}), drawn(Int32, {300, 1})});
  check(attrsOf("Slice").set("starts", Ints{29999}).set("sizes", Ints{15000}).set("steps", Ints{-2}),
        {drawn(Float32, {30000})});
  check(attrsOf("Pad").set("before", Ints{20000}).set("after", Ints{3}), {drawn(Int16, {30000}), drawn(Int16, {})});
  check(attrsOf("Pad").set("before", Ints{0, 1, 2, 0}).set("after", Ints{0, 2, 1, 0}),
        {drawn(Float32, {2, 30, 40, 5}), drawn(Float32, {})});
}

TEST(GenericReduce, PassesBlocksInEveryDirection) {
  for (const char* how : {"sum", "mean", "prod", "max", "min"})
    for (const ElemKind kind : {Float32, Float64, Float16, Int32, UInt8, UInt64})
      for (const Ints& axes : {Ints{0}, Ints{1}, Ints{2}, Ints{0, 2}, Ints{0, 1, 2}})
        check(attrsOf("Reduce").set("kind", how).set("axes", axes), {drawn(kind, {7, 21, 133})});
}

TEST(GenericReduce, PassesWideBlocksAndManyShortRuns) {
  for (const char* how : {"sum", "mean", "max", "min"}) {
    // Columns in blocks of 64, 128 and 512, with and without a rest, by few and many places.
    for (const Shape& shape : {Shape{37, 64}, Shape{5, 1000}, Shape{66, 2101}, Shape{3, 8200}, Shape{2, 35, 4107}})
      check(attrsOf("Reduce").set("kind", how).set("axes", Ints{shape.rank() - 2}), {drawn(Float32, shape)});
    // Runs shorter than a vector, as long, with a rest, and as long as one that is cut. Sums of these cancel too much.
    for (const int64_t run : {2, 3, 4, 5, 16, 17, 31, 100, 2047, 2048, 2049, 4100})
      if (run < 1000 || how != std::string("sum"))
        check(attrsOf("Reduce").set("kind", how).set("axes", Ints{1}), {drawn(Float32, {83, run})});
  }
}

TEST(GenericReduce, TakesShortRunsThatLeaveTheRangeOrHoldNan) {
  for (const int64_t run : {20, 67}) {
    std::vector<double> values(static_cast<size_t>(40 * run), 1);
    for (size_t i = 0; i < static_cast<size_t>(run); ++i) values[i] = 3e38;
    values[static_cast<size_t>(5 * run + 7)] = std::numeric_limits<double>::quiet_NaN();
    values[static_cast<size_t>(6 * run + run - 1)] = std::numeric_limits<double>::infinity();
    const Tensor x = Tensor::of(Type(Float32, {40, run}), values);
    for (const char* how : {"sum", "mean", "max", "min"})
      for (const int64_t axis : {0, 1}) check(attrsOf("Reduce").set("kind", how).set("axes", Ints{axis}), {x});
  }
}

TEST(GenericReduce, KeepsLongSumsExact) {
  const Tensor rows(f32({1, 1 << 17}, std::vector<double>(1 << 17, 0.1F)));
  const double expected = 0.1F * (1 << 17);
  for (const Shape& shape : {Shape{1, 1 << 17}, Shape{1 << 17, 1}, Shape{1 << 10, 1 << 7}}) {
    const Tensor x = rows.retyped(Type(Float32, shape));
    const Attrs attrs = attrsOf("Reduce").set("kind", "sum").set("axes", Ints{0});
    check(attrs, {x});
    check(Attrs(attrs).set("axes", Ints{0, 1}), {x});
    EXPECT_NEAR(runOne(Attrs(attrs).set("axes", Ints{0, 1}), {x}).doubles()[0], expected, 1e-2);
  }
}

TEST(GenericReduce, TakesMeansOfWhatTheSumOfLeavesTheRange) {
  const Tensor x = reals(Float32, std::vector<double>(7 * 99, 3e38));
  for (const Shape& shape : {Shape{7 * 99}, Shape{7, 99}, Shape{99, 7}})
    check(attrsOf("Reduce").set("kind", "mean").set("axes", Ints{0}), {x.retyped(Type(Float32, shape))});
  std::vector<double> cancel(700, 3e38);
  std::fill(cancel.begin() + 350, cancel.end(), -3e38);
  check(attrsOf("Reduce").set("kind", "sum").set("axes", Ints{0}), {reals(Float32, cancel)});
}

TEST(GenericReduce, LetsNanWinAndKnowsNeutralValues) {
  std::vector<double> values(150, 1);
  values[77] = std::numeric_limits<double>::quiet_NaN();
  for (const char* how : {"max", "min"})
    for (const Shape& shape : {Shape{150}, Shape{3, 50}, Shape{50, 3}})
      for (const ElemKind kind : {Float32, Float16})
        check(attrsOf("Reduce").set("kind", how).set("axes", Ints{0}), {Tensor::of(Type(kind, shape), values)});
  for (const char* how : {"sum", "mean", "prod", "max", "min"})
    for (const ElemKind kind : {Float32, Float64, Float16, Float8E4M3FN, Int8, Int64, UInt64})
      check(attrsOf("Reduce").set("kind", how).set("axes", Ints{0, 2}), {Tensor(Type(kind, {0, 2, 5}))});
  check(attrsOf("Reduce").set("kind", "max").set("axes", Ints{0}), {ints(UInt64, {1, -1, 5})});
  check(attrsOf("Reduce").set("kind", "min").set("axes", Ints{0}), {ints(UInt64, {-1, -7})});
  check(attrsOf("Reduce").set("kind", "mean").set("axes", Ints{0}), {ints(UInt64, {-1, -7, 3})});
}

TEST(GenericMatMul, PassesBlocksOnBothSides) {
  for (const ElemKind kind : {Float32, Float64, Float16, Int32, Int64, UInt8, Int4}) {
    check(attrsOf("MatMul"), {drawn(kind, {70, 131}), drawn(kind, {131, 77}, 2)});
    check(attrsOf("MatMul"), {drawn(kind, {3, 9, 20}), drawn(kind, {20, 1}, 2)});
    check(attrsOf("MatMul"), {drawn(kind, {1, 90}), drawn(kind, {90, 130}, 2)});
    check(attrsOf("MatMul"), {drawn(kind, {2, 1, 5, 6}), drawn(kind, {3, 6, 2}, 2)});
  }
  check(attrsOf("MatMul"), {drawn(Float32, {3, 0}), drawn(Float32, {0, 4})});
}

TEST(GenericMatMul, KeepsLongSumsExact) {
  constexpr int64_t kDepth = 1 << 18;
  const Tensor row(f32({1, kDepth}, std::vector<double>(kDepth, 0.1F)));
  check(attrsOf("MatMul"), {row, row.retyped(Type(Float32, {kDepth, 1}))});
}

TEST(GenericConv, PassesBlocksOfChannelsAndPositions) {
  const Attrs attrs = attrsOf("Conv").set("pads", Ints{1, 2, 1, 0});
  for (const ElemKind kind : {Float32, Float64, BFloat16, Int32, Int64}) {
    check(attrs, {drawn(kind, {2, 8, 11, 13}), drawn(kind, {67, 8, 3, 3}, 2), drawn(kind, {67}, 3)});
    check(Attrs(attrs).set("group", int64_t{6}).set("strides", Ints{2, 3}),
          {drawn(kind, {1, 6, 20, 19}), drawn(kind, {12, 1, 3, 2}, 2)});
    check(Attrs(attrs).set("dilations", Ints{2, 3}), {drawn(kind, {1, 3, 9, 17}), drawn(kind, {4, 3, 3, 3}, 2)});
  }
  check(attrsOf("Conv"), {drawn(Float32, {1, 80, 7, 10}), drawn(Float32, {9, 80, 1, 1}, 2)});
  check(attrsOf("Conv").set("strides", Ints{1, 2, 1}).set("pads", Ints{0, 1, 1, 1, 0, 1}),
        {drawn(Float32, {1, 3, 4, 5, 6}), drawn(Float32, {5, 3, 2, 3, 2}, 2)});
  check(attrsOf("Conv").set("pads", Ints{2, 2}), {f32({1, 1, 0}, {}), f32({1, 1, 1}, {3}), f32({1}, {7})});
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Few different values, so that many are equal; NaN among them where the kind has it.
Tensor crowded(ElemKind kind, Shape shape) {
  Random random(7);
  const bool nan = kind == Float32 || kind == Float64 || kind == Float16;
  if (isFloat(kind)) {
    std::vector<double> values(static_cast<size_t>(shape.elements()));
    for (double& value : values) value = nan && random.chance(0.02) ? kNan : static_cast<double>(random.between(-5, 5));
    return Tensor::of(Type(kind, std::move(shape)), values);
  }
  Ints values(static_cast<size_t>(shape.elements()));
  for (int64_t& value : values) value = random.between(-5, 5);
  return Tensor::of(Type(kind, std::move(shape)), values);
}

const std::vector<ElemKind> kOrdered{Float32, Float64, Float16, Float8E4M3FN, Int8, Int64, UInt64};

TEST(GenericArgReduce, BreaksTiesAndKnowsNan) {
  for (const ElemKind kind : kOrdered)
    for (const char* how : {"max", "min"})
      for (const int64_t last : {0, 1})
        for (const int64_t axis : {0, 1, 2})
          check(attrsOf("ArgReduce").set("kind", how).set("last", last).set("axis", axis),
                {crowded(kind, {5, 40, 70})});
  for (const ElemKind kind : {Float32, Float16, Int64, UInt64})
    for (const char* how : {"max", "min"})
      for (const int64_t last : {0, 1})
        for (const int64_t extent : {127, 128, 129, 300})
          check(attrsOf("ArgReduce").set("kind", how).set("last", last).set("axis", int64_t{1}),
                {crowded(kind, {9, extent})});
}

TEST(GenericScan, RunsBothWays) {
  for (const ElemKind kind : {Float32, Float64, BFloat16, Int32, UInt64})
    for (const int64_t flags : {0, 1, 2, 3})
      for (const int64_t axis : {0, 1, 2})
        check(attrsOf("Scan").set("axis", axis).set("exclusive", flags & 1).set("reverse", flags >> 1),
              {drawn(kind, {3, 20, 70})});
  for (const char* how : {"sum", "prod"})
    for (const int64_t flags : {0, 1, 2, 3})
      for (const Shape& shape : {Shape{7, 20}, Shape{5, 1000}, Shape{2, 6, 8209}})
        check(attrsOf("Scan")
                  .set("kind", how)
                  .set("axis", int64_t{shape.rank() - 2})
                  .set("exclusive", flags & 1)
                  .set("reverse", flags >> 1),
              {drawn(Float32, shape)});
}

void checkObserve(const Tensor& x, int64_t axis, int64_t channels, bool blocked = false, int64_t stepBits = 5) {
  const Tensor counts = drawn(Int64, {HistogramBins::of(stepBits).counts()}), known = drawn(Float64, {4, channels});
  check(attrsOf("Observe").set("axis", axis).set("blocked", int64_t{blocked}).set("step_bits", stepBits),
        {counts, known, x});
}

TEST(GenericObserve, TakesChannelsWhereverTheyLie) {
  checkObserve(drawn(Float32, {2, 5, 7, 9}), 1, 5);
  checkObserve(drawn(Float32, {2, 5, 7, 9}), 3, 9);
  checkObserve(drawn(Float32, {2, 5, 7, 9}), -1, 1);
  checkObserve(drawn(Float32, {}), -1, 1);
  checkObserve(drawn(Float32, {1, 3, 100, 70}), 1, 3);
  checkObserve(drawn(Float32, {150, 77}), 1, 77);
  checkObserve(drawn(Float32, {3, 5000}), 0, 3);
  checkObserve(drawn(Float32, {2, 0, 3}), 1, 0);
  checkObserve(drawn(Float32, {0, 2, 3}), 1, 2);
  for (const int64_t lanes : {4, 8, 16})
    for (const int64_t missing : {0, 1, 3})
      checkObserve(drawn(Float32, {2, 3, 6, 70, lanes}), 1, 3 * lanes - missing, true);
}

TEST(GenericObserve, PassesUnits) {
  checkObserve(drawn(Float32, {2, 3, 150, 160}), 1, 3);
  checkObserve(drawn(Float32, {1, 4, 50, 60, 16}), 1, 61, true);
  checkObserve(drawn(Float32, {700, 100}), 1, 100);
}

TEST(GenericObserve, CountsEverySizeAndSetsApartWhatIsNotFinite) {
  std::vector<double> values;
  for (int exponent = -150; exponent < 128; ++exponent)
    for (const double within : {1.0, 1.03125, 1.4, 1.99999}) {
      values.push_back(std::ldexp(within, exponent));
      values.push_back(-values.back());
    }
  checkObserve(f32({std::ssize(values) / 8, 8}, values), 1, 8);
  values[3] = values[700] = std::numeric_limits<double>::infinity();
  values[17] = -std::numeric_limits<double>::infinity();
  values[50] = values[2000] = std::numeric_limits<double>::quiet_NaN();
  for (const int64_t stepBits : {0, 5, 8})
    for (const Shape& shape : {Shape{std::ssize(values) / 16, 16}, Shape{16, std::ssize(values) / 16}})
      for (const int64_t axis : {0, 1})
        checkObserve(f32(shape, values), axis, shape[static_cast<int>(axis)], false, stepBits);
}

TEST(GenericTopK, SortsAsFarAsAsked) {
  for (const ElemKind kind : kOrdered)
    for (const int64_t largest : {0, 1})
      for (const int64_t k : {0, 1, 2, 7, 40})
        for (const int64_t axis : {1, 2})
          check(attrsOf("TopK").set("k", k).set("axis", axis).set("largest", largest), {crowded(kind, {3, 40, 41})});
}

TEST(GenericPools, SlideOverAnyNumberOfAxes) {
  const auto pools = [](const Attrs& from, const Tensor& x) {
    for (const char* op : {"MaxPool", "MaxPoolWithIndices", "AvgPool"}) {
      if (op == std::string("AvgPool") && !isFloat(x.type().kind())) continue;
      Attrs attrs = attrsOf(op);
      for (const char* name : {"kernel", "strides", "pads", "dilations", "sizes"}) attrs.set(name, from.ints(name));
      check(attrs, {x});
      if (op == std::string("AvgPool")) check(attrs.set("count_include_pad", int64_t{1}), {x});
    }
  };
  const Attrs plain = attrsOf("MaxPool");
  const Attrs overlap = Attrs(plain).set("kernel", Ints{3, 3}).set("strides", Ints{2, 2}).set("pads", Ints{1, 1, 1, 1});
  for (const ElemKind kind : kOrdered) {
    pools(overlap, crowded(kind, {2, 3, 15, 150}));
    pools(Attrs(overlap).set("dilations", Ints{2, 4}), crowded(kind, {1, 2, 9, 70}));
    pools(Attrs(overlap).set("sizes", Ints{5, 6}), crowded(kind, {1, 2, 8, 11}));
  }
  pools(Attrs(plain).set("kernel", Ints{2, 2}).set("pads", Ints{3, 3, 3, 3}), crowded(Float32, {1, 2, 4, 5}));
  pools(Attrs(plain).set("kernel", Ints{13, 9}).set("pads", Ints{6, 4, 6, 4}), crowded(Float32, {1, 2, 20, 70}));
  pools(Attrs(plain).set("kernel", Ints{3, 5}).set("strides", Ints{1, 3}), crowded(Float32, {1, 2, 6, 230}));
  pools(Attrs(plain).set("kernel", Ints{5}).set("pads", Ints{2, 2}), crowded(Float32, {1, 2, 300}));
  pools(Attrs(plain).set("kernel", Ints{2, 3, 2}).set("strides", Ints{2, 1, 2}), crowded(Float32, {1, 2, 4, 9, 6}));
  pools(Attrs(plain).set("kernel", Ints{1, 1, 2}), crowded(Int32, {1, 2, 4, 5, 6}));
}

TEST(GenericPools, StayQuickWithPaddingFarLargerThanTheInput) {
  const int64_t far = int64_t{1} << 30;
  for (const char* op : {"MaxPool", "AvgPool"})
    check(attrsOf(op).set("kernel", Ints{far, 2}).set("pads", Ints{far - 1, 1, 0, 0}).set("sizes", Ints{2, 2}),
          {f32({1, 1, 2, 2}, {4, 5, 6, 7})});
}

TEST(GenericGather, TakesRowsOfEveryLength) {
  Random random(3);
  for (const ElemKind kind : {Int8, Float16, Float32, Int64, QInt32}) {
    const bool quantized = isQuantized(kind);
    const auto data = [&](Shape shape) {
      return quantized ? randomTensor(random, *Type::quantized(kind, std::move(shape), {-1, {0.5F}, {0}}))
                       : drawn(kind, std::move(shape));
    };
    for (const ElemKind indices : {Int32, Int64}) {
      const Tensor at = randomIndices(random, Type(indices, {4, 5}), -30, 29);
      check(attrsOf("Gather").set("axis", int64_t{0}), {data({30}), at});
      check(attrsOf("Gather").set("axis", int64_t{1}), {data({2, 30, 17}), at});
      check(attrsOf("Gather").set("axis", int64_t{0}), {data({30, 20000}), at});
      // Along the last axis: one by one, and in runs.
      check(attrsOf("Gather").set("axis", int64_t{1}), {data({3, 30}), at});
      Ints near(700);
      for (size_t i = 0; i < near.size(); ++i) near[i] = static_cast<int64_t>(i % 45 + i / 45) - 60;
      check(attrsOf("Gather").set("axis", int64_t{1}), {data({9, 60}), Tensor::of(Type(indices, {700}), near)});
    }
  }
}

TEST(GenericIndices, AreRefusedOutsideOfTheAxis) {
  for (const int64_t bad : {3, -4}) {
    check(attrsOf("Gather").set("axis", int64_t{0}), {f32({3}, {1, 2, 3}), i64({2}, {0, bad})});
    check(attrsOf("Gather").set("axis", int64_t{1}), {Tensor(Type(Float32, {0, 3})), i64({2}, {0, bad})});
    check(attrsOf("Scatter"), {f32({3}, {1, 2, 3}), i64({2}, {0, bad}), f32({2}, {7, 8})});
    check(attrsOf("Scatter"), {Tensor(Type(Float32, {3, 0})), i64({1}, {bad}), Tensor(Type(Float32, {1, 0}))});
  }
}

TEST(GenericScatter, CombinesInAndOutOfPlace) {
  Random random(5);
  for (const char* reduction : {"none", "add", "mul", "max", "min"})
    for (const ElemKind kind : {Float32, Float64, Float16, Int8, UInt64})
      for (const int64_t width : {1, 70, 20000}) {
        const int64_t rows = width > 100 ? 3 : 40;
        const Tensor data = drawn(kind, {rows, width});
        const Tensor at = randomIndices(random, Type(Int64, {6}), -rows, rows - 1);
        check(attrsOf("Scatter").set("reduction", reduction), {data, at, drawn(kind, {6, width}, 2)});
      }
  const Attrs add = attrsOf("Scatter").set("reduction", "add");
  check(add, {reals(Float16, {2048}), i64({2}, {0, 0}), reals(Float16, {1, 1})});
}

TEST(GenericScatter, WorksInPlace) {
  for (const char* reduction : {"none", "add"}) {
    const Attrs attrs = attrsOf("Scatter").set("reduction", reduction);
    const std::vector<Tensor> in{counted(Float32, {5, 3}), i64({3}, {1, -1, 1}), drawn(Float32, {3, 3})};
    const std::vector<const Type*> types{&in[0].type(), &in[1].type(), &in[2].type()}, results{&in[0].type()};
    const Problem problem{attrs, types, results};
    const KernelPlan plan = rowsOf(Op::Scatter).back().plan(problem, {});
    const NativeRun apart = runPlan(kernels(), plan, problem, in, 1);
    EXPECT_EQ(runPlan(kernels(), plan, problem, in, 1, true).out, apart.out);
    expectClose(apart.out[0], runOne(attrs, in), false);
  }
}

TEST(GenericRows, ServeEveryOperatorThatIsNotEmitted) {
  for (const OpDef* op : allOps()) {
    const Op name = opOf(*op);
    if (op->kind != OpKind::Core || op->isDataParallel()) continue;
    EXPECT_FALSE(rowsOf(name).empty()) << op->name;
  }
}

}  // namespace
}  // namespace aglow::cpu

#endif
