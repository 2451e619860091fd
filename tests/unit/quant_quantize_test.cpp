// Which values become integers, and what the graph looks like then: a residual block and a classifier after it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "compile/evaluate.h"
#include "graph/builder.h"
#include "graph/verifier.h"
#include "quant/islands.h"
#include "quant/layers.h"
#include "quant/quantize.h"
#include "support/rng.h"
#include "unit/quant_observed.h"

namespace aglow::quant {

namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor randomFloats(uint64_t seed, const Shape& shape, double scale) {
  Rng rng(seed);
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (double& value : values) value = rng.real(-scale, scale);
  return Tensor::of(Type(ElemKind::Float32, shape), values);
}

// x -> conv1 -> relu1 -> conv2 -> add x -> relu2 -> mean -> flat -> dense + bias -> y; weights may be zero.
class QuantizeBlock : public testing::Test {
protected:
  std::unique_ptr<Module> made(double weights = 0.5) const {
    auto module = std::make_unique<Module>();
    Builder b(*module->addFunction("main"));
    const auto conv = [&](std::string_view name, Value x, uint64_t seed) {
      const Value filter = b.constant(randomFloats(seed, {4, 4, 3, 3}, weights), std::string(name) + "_w");
      const Value bias = b.constant(randomFloats(seed + 1, {4}, 0.1), std::string(name) + "_b");
      return b.named(name).conv(x, filter, bias, {.pads = {1, 1, 1, 1}});
    };
    const Value x = b.input("x", Type(ElemKind::Float32, {1, 4, 6, 6}));
    Value y = conv("conv1", x, 1);
    y = b.named("relu1").relu(y);
    y = conv("conv2", y, 3);
    y = b.named("sum").add(y, x);
    y = b.named("relu2").relu(y);
    y = b.named("mean").reduced(y, "mean", {2, 3});
    y = b.named("flat").reshape(y, {.shape = {1, 4}});
    y = b.named("dense").matMul(y, b.constant(randomFloats(5, {4, 3}, 1), "dense_w"));
    y = b.named("out").add(y, b.constant(randomFloats(6, {3}, 1), "dense_b"));
    b.output("y", y);
    return module;
  }

  static Function& mainOf(Module& module) { return *module.functions().front(); }

  Tensor run(Module& module, const Tensor& x) const {
    auto results = evaluateFunction(mainOf(module), {{"x", x}});
    EXPECT_TRUE(results.ok()) << results.error().text();
    return results->front();
  }

  // What a run on x tells.
  Request requestFor(const Tensor& x, double weights = 0.5) const { return requestFor(x, made(weights)); }
  static Request requestFor(const Tensor& x, const std::unique_ptr<Module>& module) {
    Request request;
    request.profile.model = fingerprintOf(mainOf(*module));
    request.profile.samples = 1;
    const std::vector<Watched> watched = watchValues(mainOf(*module));
    auto results = evaluateFunction(mainOf(*module), {{"x", x}});
    EXPECT_TRUE(results.ok()) << results.error().text();
    for (size_t i = 0; i < watched.size(); ++i) {
      Observed seen = observedIn({(*results)[i + 1]}, watched[i].channelAxis);
      request.profile.values[watched[i].name] = std::move(seen.value);
      request.profile.channels[watched[i].name] = std::move(seen.channels);
    }
    return request;
  }

  static std::vector<std::string> namesOf(const Islands& islands) {
    std::vector<std::string> names;
    for (const Value value : islands.values) names.push_back(nameOf(value));
    return names;
  }
};

}  // namespace

TEST_F(QuantizeBlock, IslandsAreClosed) {
  const auto module = made();
  const Islands islands = findIslands(mainOf(*module));
  // Neither what relu follows, nor what leaves the model.
  EXPECT_THAT(namesOf(islands), ElementsAre("@x", "%relu1", "%conv2", "%relu2", "%mean", "%flat"));
  const auto group = [&](std::string_view name) {
    for (const Value value : islands.values)
      if (nameOf(value) == name) return islands.group.at(value);
    return size_t{0};
  };
  EXPECT_EQ(group("%mean"), group("%flat"));
  EXPECT_NE(group("%mean"), group("%relu2"));
  EXPECT_EQ(islands.products.size(), 3u);
}

TEST_F(QuantizeBlock, KeptOperatorsMakeIslandsSmaller) {
  const auto module = made();
  const std::vector<std::string> all = namesOf(findIslands(mainOf(*module)));
  for (const char* name : {"conv1", "conv2", "sum", "mean", "dense", "relu2", "Conv", "MatMul", "Add", "Relu"})
    for (const std::string& value : namesOf(findIslands(mainOf(*module), {name}))) EXPECT_THAT(all, Contains(value));
  EXPECT_THAT(namesOf(findIslands(mainOf(*module), {"MatMul"})), ElementsAre("@x", "%relu1"));
  EXPECT_TRUE(findIslands(mainOf(*module), {"MatMul", "Conv"}).values.empty());
}

// What the integers of a graph are: all that could be, and those that leave the fewest bytes to convert.
class QuantConversions : public testing::Test {
protected:
  Module module_;
  Function& function_ = *module_.addFunction("main");
  Builder b_{function_};

  Value conv(std::string_view name, Value x) {
    const Value filter = b_.constant(randomFloats(1, {4, x.dim(1), 1, 1}, 1));
    return b_.named(name).conv(x, filter, {});
  }
  static std::vector<std::string> namesOf(const Islands& islands) {
    std::vector<std::string> names;
    for (const Value value : islands.values) names.push_back(nameOf(value));
    return names;
  }
  // By operators, after conversions are put in.
  std::map<std::string_view, int> converted() {
    Request request;
    request.profile.model = fingerprintOf(function_);
    for (const Value value : possibleIslands(function_).values)
      request.profile.values[nameOf(value)] = observedIn({randomFloats(2, value.shape(), 1)}, -1).value;
    const auto changed = quantize(function_, request, {"equalize", "correct-bias"});
    EXPECT_TRUE(changed.ok() && *changed) << (changed.ok() ? "" : changed.error().text());
    EXPECT_TRUE(verify(module_).ok());
    std::map<std::string_view, int> counts;
    for (const auto& node : function_.nodes()) ++counts[node->def().name];
    return counts;
  }
};

TEST_F(QuantConversions, AreFewerWhereWhatMovesElementsStaysInFloats) {
  const Value soft = b_.named("soft").softmax(b_.input("x", Type(ElemKind::Float32, {1, 4, 6, 6})));
  const Value moved = b_.named("moved").transpose(soft, {.perm = {0, 1, 3, 2}});
  b_.output("y", conv("conv", moved));
  b_.output("z", b_.named("exp").exp(moved));
  // As integers it would be rounded before it moves, and made floats again for exp.
  EXPECT_THAT(namesOf(possibleIslands(function_)), ElementsAre("%soft", "%moved"));
  EXPECT_THAT(namesOf(findIslands(function_)), ElementsAre("%moved"));
  EXPECT_EQ(converted()["QuantizeLinear"], 1);
}

TEST_F(QuantConversions, FollowProductsThatMoveOn) {
  // Between products, and where a product reads the same value, all is integers.
  const Value first = conv("first", b_.input("x", Type(ElemKind::Float32, {1, 4, 6, 6})));
  const Value moved = b_.named("moved").transpose(first, {.perm = {0, 1, 3, 2}});
  b_.output("y", conv("second", moved));
  const Value soft = b_.named("soft").softmax(moved);
  const Value mean = b_.named("mean").reduced(soft, "mean", {2, 3});
  b_.output("z", conv("third", mean));
  b_.output("w", conv("fourth", soft));
  EXPECT_THAT(namesOf(findIslands(function_)), ElementsAre("@x", "%first", "%moved", "%soft", "%mean"));
}

TEST_F(QuantConversions, LeaveTheLargerOfTwoProductsInIntegers) {
  const Value x = b_.input("x", Type(ElemKind::Float32, {1, 4, 6, 6}));
  const Value one = conv("one", x), other = conv("other", x);
  const Value larger = b_.named("larger").max(one, other);
  const Value relu = b_.named("relu").relu(larger);
  b_.output("y", conv("last", relu));
  EXPECT_THAT(namesOf(findIslands(function_)), ElementsAre("@x", "%one", "%other", "%relu"));
  // Of two floats one value is less to convert.
  const Value exp = b_.exp(x), soft = b_.softmax(x);
  const Value floats = b_.named("floats").max(exp, soft);
  b_.output("z", conv("fourth", floats));
  EXPECT_THAT(namesOf(findIslands(function_)), ElementsAre("@x", "%one", "%other", "%relu", "%floats"));
}

TEST_F(QuantConversions, AreOfWhatIsSmall) {
  const Value soft = b_.named("soft").softmax(b_.input("x", Type(ElemKind::Float32, {1, 4, 6, 6})));
  const Value pooled = b_.named("pooled").maxPool(soft, {.kernel = {2, 2}, .strides = {2, 2}});
  const Value relu = b_.named("relu").relu(pooled);
  b_.output("y", conv("conv", relu));
  EXPECT_THAT(namesOf(possibleIslands(function_)), ElementsAre("%soft", "%pooled", "%relu"));
  EXPECT_THAT(namesOf(findIslands(function_)), ElementsAre("%pooled", "%relu"));
  EXPECT_THAT(namesOf(findIslands(function_, {"relu"})), ElementsAre("%relu"));
}

// Attention takes all three operands as integers, and what moves them carries them.
TEST(Islands, AttentionTakesIntegers) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value x = b.input("x", Type(ElemKind::Float32, {1, 5, 8}));
  const auto heads = [&](std::string_view name, uint64_t seed) {
    const Value y = b.named(name).matMul(x, b.constant(randomFloats(seed, {8, 8}, 1), std::string(name) + "_w"));
    return b.transposed(b.reshaped(y, {1, 5, 2, 4}), {0, 2, 1, 3});
  };
  const Value q = heads("q", 1), k = heads("k", 2), v = heads("v", 3);
  const Value y = b.named("attention").attention(q, k, v, {}, {.scale = 0.5, .precision = ElemKind::Float32})->result();
  b.output("y", y);
  const Islands islands = findIslands(*module.functions().front());
  EXPECT_EQ(islands.products.size(), 3u);
  ASSERT_EQ(islands.pairs.size(), 1u);
  EXPECT_EQ(islands.pairs.front(), y.node);
  for (const Value operand : {q, k, v}) EXPECT_TRUE(islands.group.contains(operand));
  EXPECT_FALSE(islands.group.contains(y));
  EXPECT_TRUE(findIslands(*module.functions().front(), {"Attention"}).pairs.empty());

  Request request;
  request.profile.model = fingerprintOf(*module.functions().front());
  for (const Value value : possibleIslands(*module.functions().front()).values)
    request.profile.values[nameOf(value)] = observedIn({randomFloats(2, value.shape(), 1)}, -1).value;
  const auto changed = quantize(*module.functions().front(), request, {"equalize", "correct-bias"});
  ASSERT_TRUE(changed.ok()) << changed.error().text();
  const auto& nodes = module.functions().front()->nodes();
  const auto rounded = std::find_if(nodes.begin(), nodes.end(), [](const auto& n) { return n->op() == Op::Attention; });
  ASSERT_NE(rounded, nodes.end());
  EXPECT_TRUE((*rounded)->attrs().flag("rounded"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ((*rounded)->input(i).node->op(), Op::DequantizeLinear);
}

TEST_F(QuantizeBlock, ComputesNearlyTheSame) {
  const Tensor x = randomFloats(9, {1, 4, 6, 6}, 1);
  const auto plain = made();
  const std::vector<double> expected = run(*plain, x).doubles();
  Request request = requestFor(x);
  for (const Schema& schema : schemas()) {
    request.schema = &schema;
    const auto module = made();
    const auto changed = quantize(mainOf(*module), request);
    ASSERT_TRUE(changed.ok()) << changed.error().text();
    EXPECT_TRUE(*changed);
    ASSERT_TRUE(verify(*module).ok());
    const std::vector<double> got = run(*module, x).doubles();
    EXPECT_NE(got, expected) << schema.name;
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 0.1) << schema.name;
  }
}

TEST_F(QuantizeBlock, HasTheFormOfQuantizedModels) {
  const Tensor x = randomFloats(9, {1, 4, 6, 6}, 1);
  const auto module = made();
  ASSERT_TRUE(quantize(mainOf(*module), requestFor(x)).ok());
  int quantizes = 0, products = 0;
  for (const auto& node : mainOf(*module).nodes()) {
    quantizes += node->op() == Op::QuantizeLinear ? 1 : 0;
    if (node->op() != Op::Conv && node->op() != Op::MatMul) continue;
    ++products;
    for (const Value operand : node->inputs()) EXPECT_EQ(operand.node->op(), Op::DequantizeLinear) << node->name();
    EXPECT_EQ(node->input(1).node->input(0).kind(), ElemKind::Int8);
    if (node->op() == Op::Conv) EXPECT_EQ(node->input(2).node->input(0).kind(), ElemKind::Int32);
  }
  EXPECT_EQ(products, 3);
  EXPECT_EQ(quantizes, 6);
}

TEST_F(QuantizeBlock, WeightsOfZerosAreSafe) {
  const Tensor zeros(Type(ElemKind::Float32, {1, 4, 6, 6}));
  const auto module = made(0);
  ASSERT_TRUE(quantize(mainOf(*module), requestFor(zeros, 0)).ok());
  const auto plain = made(0);
  const std::vector<double> expected = run(*plain, zeros).doubles(), got = run(*module, zeros).doubles();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 0.01);
}

TEST_F(QuantizeBlock, LayersAreSwitched) {
  const Tensor x = randomFloats(9, {1, 4, 6, 6}, 1);
  const Request request = requestFor(x);
  const auto module = made();
  const auto quantization = Quantization::create(mainOf(*module), request);
  ASSERT_TRUE(quantization.ok()) << quantization.error().text();
  const auto switched = switchLayers(mainOf(*module), *quantization, true);
  ASSERT_TRUE(switched.ok()) << switched.error().text();
  ASSERT_TRUE(verify(*module).ok());
  ASSERT_EQ(switched->layers.size(), 3u);
  EXPECT_EQ(switched->layers[1].name, "conv2");
  EXPECT_EQ(switched->layers[2].op, "MatMul");
  const auto result = [&](const std::vector<int64_t>& flags) {
    const Tensor which = Tensor::of(switched->which->type(), flags);
    return evaluateFunction(mainOf(*module), {{"x", x}, {switched->which->name(), which}})->front();
  };
  const auto plain = made();
  EXPECT_EQ(result({0, 0, 0}), run(*plain, x));
  EXPECT_NE(result({1, 0, 0}), run(*plain, x));
  // A layer that nothing else in integers stands before is what quantization makes of it, but for its bias.
  Request alone = request;
  alone.keepFloat = {"Conv", "Add", "Reduce"};
  const auto last = made();
  ASSERT_TRUE(quantize(mainOf(*last), alone).ok());
  const std::vector<double> expected = run(*last, x).doubles(), got = result({0, 0, 1}).doubles();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 2e-5);
}

namespace {

// Two convolutions, and between them channels of sizes from 1 to 4^7; what leaves the second is of one size again.
std::unique_ptr<Module> unevenChannels(int64_t group) {
  auto module = std::make_unique<Module>();
  Builder b(*module->addFunction("main"));
  const int64_t channels = 8, inputs = channels / group;
  std::vector<double> first = randomFloats(1, {channels, 2, 1, 1}, 1).doubles(),
                      second = randomFloats(2, {channels, inputs, 3, 3}, 1).doubles();
  for (size_t i = 0; i < first.size(); ++i) first[i] *= std::pow(4, i / 2);
  for (size_t i = 0; i < second.size(); ++i) {
    const size_t channel = group == 1 ? i / 9 % 8 : i / 9;
    second[i] /= std::pow(4, channel);
  }
  const Value x = b.input("x", Type(ElemKind::Float32, {1, 2, 6, 6}));
  const Value filter = b.constant(Tensor::of(Type(ElemKind::Float32, {channels, 2, 1, 1}), first), "w1");
  const Value bias = b.constant(randomFloats(3, {channels}, 1), "b1"),
              last = b.constant(randomFloats(4, {channels}, 1), "b2");
  Value between = b.named("conv1").conv(x, filter, bias);
  between = b.named("between").relu(between);
  const Value filters = b.constant(Tensor::of(Type(ElemKind::Float32, {channels, inputs, 3, 3}), second), "w2");
  b.output("y", b.named("conv2").conv(between, filters, last, {.group = group}));
  return module;
}

double decibels(const std::vector<double>& expected, const std::vector<double>& got) {
  double signal = 0, noise = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    signal += expected[i] * expected[i];
    noise += (got[i] - expected[i]) * (got[i] - expected[i]);
  }
  return 10 * std::log10(signal / noise);
}

}  // namespace

TEST_F(QuantizeBlock, ChannelsBecomeOfOneSize) {
  const Tensor x = randomFloats(9, {1, 2, 6, 6}, 1);
  for (const int64_t group : {1, 8}) {
    const auto plain = unevenChannels(group), even = unevenChannels(group), integers = unevenChannels(group),
               uneven = unevenChannels(group);
    const Request request = requestFor(x, unevenChannels(group));
    const std::vector<double> expected = run(*plain, x).doubles();
    auto equalized = Quantization::create(mainOf(*even), request);
    ASSERT_TRUE(equalized.ok()) << equalized.error().text();
    EXPECT_TRUE(equalized->equalize());
    EXPECT_GT(decibels(expected, run(*even, x).doubles()), 100);
    const auto unevenness = [](const Profile& profile) {
      std::vector<float> ends = profile.channels.at("%between").max;
      std::sort(ends.begin(), ends.end());
      return ends.back() / ends[ends.size() / 2];
    };
    EXPECT_LT(unevenness(equalized->profile()) * 10, unevenness(request.profile)) << group;
    ASSERT_TRUE(quantize(mainOf(*integers), request).ok());
    ASSERT_TRUE(quantize(mainOf(*uneven), request, {"equalize"}).ok());
    const double with = decibels(expected, run(*integers, x).doubles());
    EXPECT_GT(with, 30) << group;
    EXPECT_GT(with, decibels(expected, run(*uneven, x).doubles()) + 10) << group;
  }
}

// Floats make channels of very different sizes, which a depthwise convolution takes.
TEST_F(QuantizeBlock, ChannelsThatFloatsMakeBecomeOfOneSize) {
  constexpr int64_t kChannels = 8;
  const auto swished = [] {
    auto module = std::make_unique<Module>();
    Builder b(*module->addFunction("main"));
    std::vector<double> sizes, weights = randomFloats(2, {kChannels, 1, 3, 3}, 1).doubles();
    for (int64_t c = 0; c < kChannels; ++c) sizes.push_back(std::pow(4, c));
    for (size_t i = 0; i < weights.size(); ++i) weights[i] /= std::pow(4, i / 9);
    const Value x = b.input("x", Type(ElemKind::Float32, {1, kChannels, 6, 6}));
    const Value grown = b.mul(x, b.constant(Tensor::of(Type(ElemKind::Float32, {kChannels, 1, 1}), sizes)));
    const Value filters = b.constant(Tensor::of(Type(ElemKind::Float32, {kChannels, 1, 3, 3}), weights), "w");
    b.output("y", b.named("conv").conv(b.named("between").tanh(grown), filters, {}, {.group = kChannels}));
    return module;
  };
  std::vector<double> values = randomFloats(9, {1, kChannels, 6, 6}, 1e-6).doubles();
  const Tensor x = Tensor::of(Type(ElemKind::Float32, {1, kChannels, 6, 6}), values);
  const Request request = requestFor(x, swished());
  const auto plain = swished(), even = swished(), integers = swished(), uneven = swished();
  const std::vector<double> expected = run(*plain, x).doubles();
  auto equalized = Quantization::create(mainOf(*even), request);
  ASSERT_TRUE(equalized.ok()) << equalized.error().text();
  EXPECT_TRUE(equalized->equalize());
  EXPECT_GT(decibels(expected, run(*even, x).doubles()), 100);
  ASSERT_TRUE(quantize(mainOf(*integers), request).ok());
  ASSERT_TRUE(quantize(mainOf(*uneven), request, {"equalize"}).ok());
  EXPECT_GT(decibels(expected, run(*integers, x).doubles()), decibels(expected, run(*uneven, x).doubles()) + 10);
}

TEST_F(QuantizeBlock, ValuesThatOthersSeeKeepTheirSizes) {
  const Tensor x = randomFloats(9, {1, 2, 6, 6}, 1);
  const auto watched = [&] {
    auto module = unevenChannels(1);
    Builder b(mainOf(*module));
    for (const auto& node : mainOf(*module).nodes())
      if (node->name() == "between") {
        b.output("seen", node->result());
        break;
      }
    return module;
  };
  const auto module = watched();
  const Request request = requestFor(x, watched());
  auto quantization = Quantization::create(mainOf(*module), request);
  ASSERT_TRUE(quantization.ok()) << quantization.error().text();
  EXPECT_FALSE(quantization->equalize());
}

TEST_F(QuantizeBlock, BiasesTakeWhatRoundingAdds) {
  // Inputs of one sign, so that the errors of weights add up.
  std::vector<double> ones(4 * 6 * 6, 1);
  const Tensor x = Tensor::of(Type(ElemKind::Float32, {1, 4, 6, 6}), ones);
  const auto plain = made();
  const std::vector<double> expected = run(*plain, x).doubles();
  const Request request = requestFor(x);
  const auto error = [&](const std::set<std::string, std::less<>>& disabled) {
    const auto module = made();
    EXPECT_TRUE(quantize(mainOf(*module), request, disabled).ok());
    return -decibels(expected, run(*module, x).doubles());
  };
  EXPECT_LT(error({"equalize"}), error({"equalize", "correct-bias"}));
}

TEST_F(QuantizeBlock, RefusesWhatDoesNotFit) {
  const Tensor x = randomFloats(9, {1, 4, 6, 6}, 1);
  const Request right = requestFor(x);
  const auto fault = [&](const Request& request) {
    const auto module = made();
    const auto changed = quantize(mainOf(*module), request);
    return changed.ok() ? std::string("none") : changed.error().text();
  };
  EXPECT_EQ(fault(right), "none");
  Request other = requestFor(x, 0.25);
  EXPECT_THAT(fault(other), HasSubstr("the profile is of another model"));
  Request missing = right;
  missing.profile.values.erase("%relu1");
  EXPECT_THAT(fault(missing), HasSubstr("the profile says nothing of '%relu1'"));
  Request unknown = right;
  unknown.keepFloat = {"cnov1"};
  EXPECT_THAT(fault(unknown), HasSubstr("did you mean 'conv1'?"));
  unknown.keepFloat = {"Softmaxx"};
  EXPECT_THAT(fault(unknown), HasSubstr("nothing that could be quantized is named 'Softmaxx'"));
}

}  // namespace aglow::quant
