// Nests of random programs, evaluated and as C, against the reference kernels.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "evaluate.h"
#include "fuse/fuse.h"
#include "graph/builder.h"
#include "inst/fused.h"
#include "inst/irgen.h"
#include "inst/text.h"
#include "memory/pass_table.h"
#include "nest_check.h"
#include "random_graph.h"
#include "random_matrices.h"

namespace aglow {
namespace {

using testing_support::NestCheck;

// Elements that conversions might get wrong: the ends of ranges, halves, what needs more bits than a double has.
Tensor edges(const Type& type) {
  if (isFloat(type.kind())) {
    const double inf = std::numeric_limits<double>::infinity();
    std::vector<double> values{std::nan(""), inf,    -inf,   0,       -0.0,      0.5,        1.5,        2.5,
                               -1.5,         127.5,  128,    -128.5,  255.5,     300,        -129,       448,
                               464,          480,    57344,  61440,   65504,     65520,      70000,      1e10,
                               -1e10,        3e9,    0x1p31, 0x1p32,  -0x1p31,   0x1p63,     0x1p64,     -0x1p63,
                               1e20,         -1e300, 1e300,  0x1p127, 0x1.8p127, 0x1p-127,   0x1p-126,   0x1p-149,
                               1e-8,         -1e-8,  0.0078, 0.3,     1e-310,    1 + 0x1p-8, 1 + 0x1p-9, 1 + 0x3p-9,
                               1 + 0x1p-25,  6,      5,      0.25};
    values.resize(static_cast<size_t>(type.elements()), 0.75);
    return Tensor::fromDoubles(type, values);
  }
  std::vector<int64_t> values;
  for (int bit = 0; bit < 64; ++bit)
    for (const uint64_t low : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, uint64_t{1} << (bit / 2)})
      values.push_back(static_cast<int64_t>((uint64_t{1} << bit) + low));
  values.resize(static_cast<size_t>(type.elements()), 3);
  return Tensor::fromInts(type, values);
}

NestCheck::Counts check(const Function& function, uint64_t seed, bool specials = false, bool exact = false) {
  Result<Program> program = generate(function);
  EXPECT_TRUE(program.ok()) << program.error().text();
  EXPECT_TRUE(fuseInstructions(*program, fuseEverything()).ok());
  EXPECT_TRUE(runMemoryPasses(*program).ok());
  auto executable = InterpreterExecutable::create(*program);
  EXPECT_TRUE(executable.ok()) << executable.error().text();
  auto nests = NestCheck::create(*executable, {}, exact);
  EXPECT_TRUE(nests.ok()) << nests.error().text();
  if (!nests.ok()) return {};
  Rng rng(seed);
  std::vector<Tensor> inputs;
  for (const Binding& input : executable->inputs())
    inputs.push_back(exact ? edges(input.type) : testing_support::randomTensor(rng, input.type, specials));
  EXPECT_TRUE(executable->run(inputs, nests->get()).ok());
  for (const std::string& text : (*nests)->counts().differences) ADD_FAILURE() << "seed " << seed << ": " << text;
  return (*nests)->counts();
}

TEST(NestCheck, MatricesGiveWhatTheReferenceGives) {
  NestCheck::Counts counts;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    Module module;
    Rng rng(seed);
    counts += check(testing_support::RandomMatrices(module, rng, {.rows = 5, .columns = 37}).grow(20), seed);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(counts.loops, 20);
  EXPECT_GT(counts.reducing, 10);
  EXPECT_GT(counts.epilogues, 3);
}

// What is combined is the same at all points of a row: only the first sum has something to compute at each of them.
TEST(NestCheck, RowsOfOneValueGiveWhatTheReferenceGives) {
  Module module;
  Builder b(*module.addFunction("f"));
  const Value x = b.neg(b.input("x", Type(ElemKind::Float32, Shape{3, 1})));
  const Value most = b.reduce(b.expand(x, {.shape = {3, 40}}), {.kind = "max", .axes = {1}});
  const Value weight = b.exp(b.sub(x, most));
  const Value sum = b.reduce(b.expand(weight, {.shape = {3, 40}}), {.kind = "sum", .axes = {1}});
  b.output("y", b.expand(b.div(weight, sum), {.shape = {3, 40}}));
  EXPECT_EQ(check(b.function(), 1).reducing, 1);
}

// Every data-parallel operator on all kinds that it takes, with values at the ends of their ranges among them. Each by
// itself: a chain may make the rounding of one operator as large as it likes (Sin of a Cosh).
TEST(NestCheck, OperatorsOfAllKindsGiveWhatTheReferenceGives) {
  std::map<std::string_view, int> uses;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Module module;
    RandomOptions options;
    options.predicates = 0;
    options.maxElements = 64;
    options.chains = false;
    options.allowed = [](const OpDef& op) { return op.isDataParallel(); };
    RandomGraph random(module, seed, options);
    const Function& function = *random.addFunction("main", 150);
    for (const auto& node : function.nodes()) ++uses[node->def().name];
    check(function, seed, true);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(uses["Cast"], 10);
  EXPECT_GT(uses["Quantize"], 3);
  EXPECT_GT(uses.size(), 50U);
}

TEST(NestCheck, CastsAreExact) {
  for (int from = 0; from < kElemKinds; ++from) {
    const auto kind = static_cast<ElemKind>(from);
    if (isQuantized(kind)) continue;
    Module module;
    Builder b(*module.addFunction("main"));
    const Value x = b.input("x", Type(kind, Shape{256}));
    for (int to = 0; to < kElemKinds; ++to) {
      const auto wanted = static_cast<ElemKind>(to);
      if (isQuantized(wanted)) continue;
      const std::string name(elemName(wanted));
      b.output(name, b.cast(x, {.to = wanted, .saturate = false}));
      if (elemInfo(wanted).bits == 8 && isFloat(wanted)) b.output(name + "_saturated", b.cast(x, {.to = wanted}));
    }
    for (const char* rounding : {"up", "down"})
      b.output(rounding, b.cast(x, {.to = ElemKind::Float8E8M0, .rounding = rounding}));
    check(b.function(), 0, true, true);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(NestCheck, QuantizationIsExact) {
  Module module;
  Builder b(*module.addFunction("main"));
  for (const ElemKind from : {ElemKind::Float32, ElemKind::Float64, ElemKind::Float16, ElemKind::BFloat16}) {
    const Value x = b.input(std::string(elemName(from)), Type(from, Shape{2, 128}));
    for (const ElemKind to : {ElemKind::QInt8, ElemKind::QUInt8, ElemKind::QInt16, ElemKind::QInt32}) {
      const std::string name = fmt::format("{}_{}", elemName(from), elemName(to));
      const Value one = b.quantize(x, {.to = to, .scales = {0.1}, .offsets = {3}});
      const Value two = b.quantize(x, {.to = to, .scales = {0.3, 7}, .offsets = {0, 100}, .axis = 0});
      b.output(name, one);
      b.output(name + "_axis", two);
      b.output(name + "_real", b.dequantize(one, {.to = ElemKind::Float32}));
      b.output(name + "_axis_real", b.dequantize(two, {.to = ElemKind::Float64}));
    }
  }
  check(b.function(), 0, true, true);
}

}  // namespace
}  // namespace aglow
