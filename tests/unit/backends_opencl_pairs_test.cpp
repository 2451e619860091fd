// f64 as two f32 each, on whatever OpenCL device the machine has: how exact that is, which values it has, and that all
// kernels can.
#include <cmath>

#include "on_device.h"
#include "ops/all_ops.h"

namespace aglow {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class Pairs : public OnDevice, public ::testing::WithParamInterface<bool> {
public:
  static std::string nameOf(const ::testing::TestParamInfo<bool>& chosen) { return chosen.param ? "Groups" : "Items"; }

protected:
  void SetUp() override {
    codegen::DeviceShape shape = GetParam() ? kOfGroups : kOfItems;
    shape.pairs = true;
    choose(shape);
  }

  static Tensor tensor(ElemKind kind, const std::vector<double>& values) {
    return Tensor::fromDoubles(Type(kind, Shape{static_cast<int64_t>(values.size())}), values);
  }

  // What the device computes of these elements, and the reference.
  template <class Make>
  std::pair<std::vector<double>, std::vector<double>> both(const std::vector<Tensor>& inputs, const Make& make) const {
    Module module;
    Builder b(*module.addFunction("f"));
    std::vector<Value> values;
    NamedTensors bindings;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string name = fmt::format("x{}", i);
      values.push_back(b.input(name, inputs[i].type()));
      bindings.emplace(name, inputs[i]);
    }
    b.output("y", make(b, values));
    auto expected = evaluateFunction(b.function(), bindings);
    auto executable = compiled(b.function());
    if (!expected.ok() || !executable.ok()) {
      ADD_FAILURE() << (expected.ok() ? executable.error() : expected.error()).text();
      return {};
    }
    auto bound = bindByName((*executable)->inputs(), {bindings.begin(), bindings.end()});
    auto results = (*executable)->run(*bound);
    if (!results.ok()) {
      ADD_FAILURE() << results.error().text();
      return {};
    }
    return {results->at(0).doubles(), expected->at(0).doubles()};
  }

  template <class Make>
  void expectExact(const char* what, const std::vector<Tensor>& inputs, int bits, const Make& make,
                   double least = 0x1p-90) const {
    const auto [found, expected] = both(inputs, make);
    ASSERT_EQ(found.size(), expected.size()) << what;
    for (size_t i = 0; i < found.size(); ++i) {
      if (std::isnan(expected[i]) && std::isnan(found[i])) continue;
      if (found[i] == expected[i]) {
        EXPECT_EQ(std::signbit(found[i]), std::signbit(expected[i])) << what << " of element " << i;
        continue;
      }
      EXPECT_TRUE(std::isfinite(expected[i])) << what << " of element " << i << ", " << inputs[0].doubles()[i] << ": "
                                              << found[i] << " against " << expected[i];
      // Below 2^-90 what is lost by rounding cannot be said in f32 any more.
      EXPECT_LE(std::abs(found[i] - expected[i]), std::ldexp(std::max(std::abs(expected[i]), least), -bits))
          << what << " of element " << i << ", " << inputs[0].doubles()[i] << ": " << found[i] << " against "
          << expected[i];
    }
  }

  // Of both signs, between 10 to these powers; pairs have them exactly.
  static std::vector<double> numbers(double least, double most, size_t count = 500) {
    Rng rng(4);
    std::vector<double> all(count);
    for (double& one : all) {
      const double value = (rng.flip() ? -1 : 1) * std::pow(10, rng.real(least, most));
      const auto high = static_cast<float>(value), low = static_cast<float>(value - high);
      one = double{high} + double{low};
    }
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, Pairs, ::testing::Bool(), Pairs::nameOf);

const std::vector<double> kSpecial{0.0, -0.0, kInf,  -kInf, kNan,     1,        -1,   0.5,  -0.5, 1.5, 2.5, -2.5, 3,
                                   -3,  1e30, -1e30, 2.125, 16777215, 16777217, 1e15, 0.25, 20,   6,   -6,  2,    -2};

TEST_P(Pairs, ComputeFunctionsOfOneNumber) {
  struct Case {
    const char* name;
    Value (*make)(Builder&, const std::vector<Value>&);
    double least, most;  // powers of ten
    int bits;
    bool turns = false;  // exact beside 1, for arguments up to 1e14
  };
  const Case cases[] = {
      {"neg", [](Builder& b, const std::vector<Value>& x) { return b.neg(x[0]); }, -20, 20, 46},
      {"abs", [](Builder& b, const std::vector<Value>& x) { return b.abs(x[0]); }, -20, 20, 46},
      {"floor", [](Builder& b, const std::vector<Value>& x) { return b.floor(x[0]); }, -3, 12, 46},
      {"round", [](Builder& b, const std::vector<Value>& x) { return b.round(x[0]); }, -3, 12, 46},
      {"sqrt", [](Builder& b, const std::vector<Value>& x) { return b.sqrt(x[0]); }, -12, 30, 46},
      {"exp", [](Builder& b, const std::vector<Value>& x) { return b.exp(x[0]); }, -8, 1.8, 42},
      {"expm1", [](Builder& b, const std::vector<Value>& x) { return b.expm1(x[0]); }, -12, 1.8, 42},
      {"log1p", [](Builder& b, const std::vector<Value>& x) { return b.log1p(b.abs(x[0])); }, -12, 30, 44},
      {"log", [](Builder& b, const std::vector<Value>& x) { return b.log(b.abs(x[0])); }, -12, 30, 44},
      {"sin", [](Builder& b, const std::vector<Value>& x) { return b.sin(x[0]); }, -8, 14, 45, true},
      {"cos", [](Builder& b, const std::vector<Value>& x) { return b.cos(x[0]); }, -8, 14, 45, true},
      {"atan", [](Builder& b, const std::vector<Value>& x) { return b.atan(x[0]); }, -12, 12, 45},
      {"tanh", [](Builder& b, const std::vector<Value>& x) { return b.tanh(x[0]); }, -8, 2, 44},
      {"erf", [](Builder& b, const std::vector<Value>& x) { return b.erf(x[0]); }, -8, 1, 44},
      {"reciprocal", [](Builder& b, const std::vector<Value>& x) { return b.reciprocal(x[0]); }, -12, 12, 45},
  };
  for (const Case& c : cases) {
    expectExact(c.name, {tensor(ElemKind::Float64, numbers(c.least, c.most))}, c.bits, c.make, c.turns ? 1 : 0x1p-90);
    std::vector<double> special = kSpecial;
    if (c.turns) std::erase_if(special, [](double x) { return std::isfinite(x) && std::abs(x) > 1e14; });
    expectExact(c.name, {tensor(ElemKind::Float64, special)}, 42, c.make, c.turns ? 1 : 0x1p-90);
  }
}

TEST_P(Pairs, ComputeFunctionsOfTwoNumbers) {
  struct Case {
    const char* name;
    Value (*make)(Builder&, const std::vector<Value>&);
    double least, most;
    int bits;
  };
  const Case cases[] = {
      {"add", [](Builder& b, const std::vector<Value>& x) { return b.add(x[0], x[1]); }, -6, 6, 45},
      {"sub", [](Builder& b, const std::vector<Value>& x) { return b.sub(x[0], x[1]); }, -6, 6, 45},
      {"mul", [](Builder& b, const std::vector<Value>& x) { return b.mul(x[0], x[1]); }, -9, 9, 45},
      {"rem", [](Builder& b, const std::vector<Value>& x) { return b.rem(x[0], x[1]); }, 0, 4, 30},
      {"div", [](Builder& b, const std::vector<Value>& x) { return b.div(x[0], x[1]); }, -9, 9, 45},
      {"pow", [](Builder& b, const std::vector<Value>& x) { return b.pow(b.abs(x[0]), x[1]); }, -2, 1, 40},
      {"min", [](Builder& b, const std::vector<Value>& x) { return b.min(x[0], x[1]); }, -9, 9, 46},
      {"max", [](Builder& b, const std::vector<Value>& x) { return b.max(x[0], x[1]); }, -9, 9, 46},
  };
  std::vector<double> left, right;
  for (const double a : kSpecial)
    for (const double b : kSpecial)
      if (std::abs(a) < 1e15 && std::abs(b) < 1e15) {
        left.push_back(a);
        right.push_back(b);
      }
  for (const Case& c : cases) {
    std::vector<double> other = numbers(c.least, c.most);
    std::reverse(other.begin(), other.end());
    expectExact(c.name, {tensor(ElemKind::Float64, numbers(c.least, c.most)), tensor(ElemKind::Float64, other)}, c.bits,
                c.make);
    if (std::string_view(c.name) != "pow")
      expectExact(c.name, {tensor(ElemKind::Float64, left), tensor(ElemKind::Float64, right)}, 42, c.make);
  }
}

// Also where the special number beside it, 1 or whole, is so by its first half alone.
TEST_P(Pairs, RaiseToSpecialPowers) {
  std::vector<double> left{1 + 0x1p-40, 1 - 0x1p-40, -1 - 0x1p-40, -1 + 0x1p-40, 1 + 0x1p-40, 1 - 0x1p-40,
                           1 + 0x1p-40, 1 - 0x1p-40, -1 - 0x1p-40, -1 + 0x1p-40, -kInf,       -kInf,
                           -0.0,        -0.0,        -kInf,        -kInf,        -0.0,        -0.0,
                           -kInf,       192.0546875, 0.0056,       -192.0546875};
  std::vector<double> right{kNan,        kNan,        kInf,       kInf,       kInf,        kInf,
                            -kInf,       -kInf,       -kInf,      -kInf,      1 + 0x1p-40, -1 - 0x1p-40,
                            1 - 0x1p-40, 0x1p-40 - 1, 0x1p47 - 1, 1 - 0x1p47, 0x1p24 + 1,  -0x1p24 - 1,
                            0x1p24 + 2,  -17,         -17,        -17};
  for (const double a : kSpecial)
    for (const double b : kSpecial) {
      const double power = std::abs(std::pow(a, b));
      if (power != 0 && std::isfinite(power) && (power > 1e38 || power < 1e-37)) continue;
      left.push_back(a);
      right.push_back(b);
    }
  expectExact(
      "pow", {tensor(ElemKind::Float64, left), tensor(ElemKind::Float64, right)}, 38,
      [](Builder& b, const std::vector<Value>& x) { return b.pow(x[0], x[1]); }, 0x1p-100);
}

TEST_P(Pairs, ConvertWholeNumbersAndNarrowFloats) {
  std::vector<double> values = numbers(-3, 20);
  values.insert(values.end(),
                {0x1p63, -0x1p63, 0x1p64, 0x1p31, -0x1p31, 0x1p32, 0x1p31 - 0.5, kInf, -kInf, kNan, 65519.99, 65520,
                 65504, 0x1.001p-14, 1.00048828125, 1.000488281250001, 1.00146484374999});
  for (const ElemKind to : {ElemKind::Int32, ElemKind::UInt32, ElemKind::Int64, ElemKind::UInt64, ElemKind::Int8,
                            ElemKind::Float32, ElemKind::Float16, ElemKind::BFloat16, ElemKind::Float8E4M3FN})
    expectExact(std::string(elemName(to)).c_str(), {tensor(ElemKind::Float64, values)}, 44,
                [&](Builder& b, const std::vector<Value>& x) { return b.cast(x[0], {.to = to}); });
  for (const ElemKind from : {ElemKind::Float32, ElemKind::Float64})
    expectExact("f8e8m0", {tensor(from, {0, 1e-30, 1, 3, 0x1.fp127, kInf, -1, kNan})}, 44,
                [](Builder& b, const std::vector<Value>& x) {
                  return b.cast(x[0], {.to = ElemKind::Float8E8M0, .saturate = false, .rounding = "down"});
                });
  const std::vector<double> whole{0, 1, 16777217, 0x1p31 - 1, 4294967295.0, 0x1p47 + 1, 9e15};
  for (const ElemKind from : {ElemKind::Int64, ElemKind::UInt64})
    expectExact("f64", {tensor(from, whole)}, 47,
                [&](Builder& b, const std::vector<Value>& x) { return b.cast(x[0], {.to = ElemKind::Float64}); });
}

// All that lies in the range of f32 comes back as it was, up to the bits that pairs have.
TEST_P(Pairs, KeepWhatIsStored) {
  std::vector<double> values = numbers(-25, 38);
  values.insert(values.end(), {1 + 0x1p-48, 1 - 0x1p-49, 0x1.fffffffffffffp0, 0x1p-126, 0x1p127, 1e39, -1e300, 1e-60});
  const auto [found, expected] =
      both({tensor(ElemKind::Float64, values)}, [](Builder& b, const std::vector<Value>& x) { return b.neg(x[0]); });
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const double size = std::abs(expected[i]);
    if (size > 3.5e38)
      EXPECT_EQ(found[i], std::copysign(kInf, expected[i]));
    else if (size < 1e-50)
      EXPECT_EQ(found[i], 0);
    else
      EXPECT_LE(std::abs(found[i] - expected[i]), std::ldexp(size, -48)) << expected[i];
  }
}

TEST_P(Pairs, RunEveryKernelOfTheCoreSet) {
  for (const OpDef* op : allOps()) {
    if (op->kind != OpKind::Core && op->kind != OpKind::Elementwise) continue;
    SCOPED_TRACE(op->name);
    Module module;
    RandomGraph random(module, 7, {.kinds = kinds::any, .maxElements = 300, .predicates = 0});
    Function* function = module.addFunction("f");
    addUses(random, *function, *op, 2);
    expectSame(*function, 11, false);
  }
}

// Sums of f32, which are taken in f64, need not be asked for; f64 of the model must be.
TEST_P(Pairs, SumProductsOfMatricesAndImages) {
  Module module;
  Builder b(*module.addFunction("f"));
  const auto input = [&](const char* name, Shape shape, ElemKind kind = ElemKind::Float64) {
    return b.input(name, Type(kind, std::move(shape)));
  };
  b.output("product", b.matMul(input("x", {2, 17, 33}), input("w", {33, 21})));
  b.output("conv", b.conv(input("image", {2, 6, 9, 11}), input("filter", {8, 3, 3, 3}), input("shift", {8}),
                          {.strides = {2, 1}, .pads = {1, 0, 1, 2}, .group = 2}));
  b.output("sum", b.reduce(input("terms", {300, 5}), {.kind = "sum", .axes = {0}}));
  b.output("mean", b.reduce(input("floats", {4, 700}, ElemKind::Float32), {.kind = "mean", .axes = {1}}));
  b.output("pool", b.avgPool(input("plane", {1, 2, 6, 6}), {.kernel = {3, 3}}));
  b.output("best", b.argReduce(input("line", {3, 200}), {.kind = "max", .axis = 1}));
  b.output("scan", b.scan(input("steps", {3, 200}), {.kind = "sum", .axis = 1}));
  expectSame(b.function(), 3, false);
}

}  // namespace

}  // namespace aglow
