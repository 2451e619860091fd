// Values that are watched while samples run: what instructions tell of them is what the values themselves tell, and no
// value lives longer for it.
#include <gtest/gtest.h>

#include "runtime/network.h"
#include "support/rng.h"
#include "unit/quant_observed.h"

namespace aglow::quant {

namespace {

Tensor randomFloats(uint64_t seed, const Shape& shape, double scale) {
  Rng rng(seed);
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (double& value : values) value = rng.real(-scale, scale);
  return Tensor::of(Type(ElemKind::Float32, shape), values);
}

constexpr int kLayers = 6;

// Convolutions one after the other.
std::unique_ptr<Module> chain() {
  auto module = std::make_unique<Module>();
  Builder b(*module->addFunction("main"));
  Value y = b.input("x", Type(ElemKind::Float32, {1, 8, 20, 20}));
  for (uint64_t layer = 0; layer < kLayers; ++layer)
    y = b.relu(b.conv(y, b.constant(randomFloats(layer, {8, 8, 3, 3}, 0.3)), {}, {.pads = {1, 1, 1, 1}}));
  b.output("y", y);
  return module;
}

std::unique_ptr<Network> loaded(std::unique_ptr<Module> module, const CompileOptions& options) {
  auto compiled = compileModule(std::move(module), options);
  EXPECT_TRUE(compiled.ok());
  auto network = Network::load(*std::move(compiled));
  EXPECT_TRUE(network.ok());
  return *std::move(network);
}

}  // namespace

TEST(QuantWatch, ObservesWhatOutputsWouldShow) {
  const CompileOptions options{.backend = "interpreter"};
  auto watching = chain(), observing = chain();
  const std::vector<Watched> outputs = watchValues(*watching->functions().front());
  const std::vector<Watched> states = observeValues(*observing->functions().front());
  ASSERT_EQ(outputs.size(), size_t{kLayers});
  ASSERT_EQ(states.size(), outputs.size());
  std::vector<std::string> counts, channels;
  for (const Watched& one : states) {
    counts.push_back(one.counts->name());
    channels.push_back(one.channels->name());
  }
  const std::unique_ptr<Network> shown = loaded(std::move(watching), options);
  const std::unique_ptr<Network> told = loaded(std::move(observing), options);
  std::vector<std::vector<Tensor>> samples(outputs.size());
  for (uint64_t run = 0; run < 3; ++run) {
    const std::map<std::string, ModelValue> sample{{"x", ModelValue::of(randomFloats(90 + run, {1, 8, 20, 20}, 2))}};
    auto values = shown->run(0, valuesIn(sample));
    ASSERT_TRUE(values.ok()) << values.error().text();
    ASSERT_EQ(values->size(), outputs.size() + 1);
    for (size_t i = 0; i < outputs.size(); ++i) samples[i].push_back((*values)[i + 1].tensor());
    ASSERT_TRUE(told->run(0, valuesIn(sample)).ok());
  }
  const auto stateOf = [&](const std::string& name) { return *told->state(told->findState(name)); };
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Observed seen = observed(stateOf(counts[i]), stateOf(channels[i]), 3);
    const Observed expected = observedIn(samples[i], outputs[i].channelAxis);
    EXPECT_EQ(seen.value, expected.value) << outputs[i].name;
    EXPECT_EQ(seen.channels, expected.channels) << outputs[i].name;
    EXPECT_EQ(seen.value.elements, 3 * 8 * 20 * 20);
  }
}

TEST(QuantWatch, KeepsNoValueAlive) {
  for (const int64_t lanes : {0, 8}) {
    const CompileOptions options{.backend = "interpreter", .lanes = lanes};
    auto observing = chain();
    observeValues(*observing->functions().front());
    const int64_t plain = loaded(chain(), options)->facts().arenaBytes;
    const int64_t observed = loaded(std::move(observing), options)->facts().arenaBytes;
    // What is new of channels; a value has 12800 bytes.
    EXPECT_LE(observed, plain + kLayers * 512) << lanes;
  }
}

}  // namespace aglow::quant
