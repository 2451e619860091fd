// Functions cut into parts: the price of a cut, the same bits as whole, and what cannot be cut.
#include "runtime/partition.h"

#include <gtest/gtest.h>

#include "graph/builder.h"
#include "graph/text.h"
#include "runtime/device.h"
#include "runtime/host.h"
#include "runtime/module_source.h"
#include "runtime/partition_graph.h"

namespace aglow {
namespace {

Type floats(std::vector<int64_t> dims) { return Type(ElemKind::Float32, Shape(std::move(dims))); }

Value layer(Builder& builder, Value x, int64_t width, const std::string& name) {
  const int64_t columns = x.dim(1);
  std::vector<float> weights;
  for (int64_t i = 0; i < columns * width; ++i) weights.push_back(static_cast<float>(i % 7) / 8 - 0.375F);
  builder.named(name);
  return builder.tanh(builder.matMul(x, builder.constant(Tensor::of(floats({columns, width}), weights), name + ".w")));
}

// x -> layers of the widths, one after the other.
std::unique_ptr<Module> chain(const std::vector<int64_t>& widths) {
  auto module = std::make_unique<Module>();
  Builder builder(*module->addFunction("main"));
  Value x = builder.input("x", floats({2, 8}));
  for (size_t i = 0; i < widths.size(); ++i) x = layer(builder, x, widths[i], "layer" + std::to_string(i));
  builder.output("y", x);
  return module;
}

// Two branches that come together.
std::unique_ptr<Module> diamond() {
  auto module = std::make_unique<Module>();
  Builder builder(*module->addFunction("main"));
  const Value top = layer(builder, builder.input("x", floats({2, 8})), 16, "top");
  const Value left = layer(builder, layer(builder, top, 32, "left0"), 16, "left1");
  const Value right = layer(builder, layer(builder, top, 24, "right0"), 16, "right1");
  builder.named("bottom");
  builder.output("y", builder.add(left, right));
  builder.output("z", top);
  return module;
}

CompileOptions forBackend(std::string_view backend) {
  CompileOptions options;
  options.backend = backend;
  options.target.optLevel = 0;  // much is compiled and little is run
  return options;
}

Compilation upToCut(std::unique_ptr<Module> module, const PartitionRequest& request = {},
                    std::string_view backend = kReferenceBackend) {
  CompileOptions options = forBackend(backend);
  options.stopAfter = partitionPhase(request);
  auto compiled = compileModule(std::move(module), options);
  EXPECT_TRUE(compiled.ok());
  return *std::move(compiled);
}

Result<Partition> cut(std::unique_ptr<Module> module, const PartitionRequest& request) {
  return partition(upToCut(std::move(module), request), request, forBackend(kReferenceBackend));
}

Values someInput() {
  std::vector<float> numbers;
  for (int i = 0; i < 16; ++i) numbers.push_back(static_cast<float>(i) / 4 - 2);
  return {{"x", ModelValue::of(Tensor::of(floats({2, 8}), numbers))}};
}

std::vector<Tensor> outputsOf(std::shared_ptr<const NetworkSource> source, const std::string& devices) {
  auto host = HostManager::create({.devices = *parseDevices(devices)});
  EXPECT_TRUE(host.ok());
  const auto added = (*host)->addNetwork("n", std::move(source));
  EXPECT_TRUE(added.ok()) << added.diagnostics().errors().front().text();
  RunReply reply = (*host)->runNetwork({.network = "n", .inputs = someInput()}).get();
  EXPECT_TRUE(reply.outputs.ok()) << reply.outputs.diagnostics().errors().front().text();
  std::vector<Tensor> tensors;
  for (const ModelValue& value : *reply.outputs) tensors.push_back(value.tensor());
  return tensors;
}

std::vector<Tensor> wholeOutputs(std::unique_ptr<Module> module, std::string_view backend = kReferenceBackend) {
  auto compiled = compileModule(std::move(module), forBackend(backend));
  return outputsOf(*sourceOf(*std::move(compiled)), std::string(backend));
}

std::vector<Tensor> cutOutputs(std::unique_ptr<Module> module, const PartitionRequest& request,
                               const std::string& devices, size_t* parts = nullptr,
                               std::string_view backend = kReferenceBackend) {
  const Compilation compilation = upToCut(std::move(module), request, backend);
  auto made = partition(compilation, request, forBackend(backend));
  EXPECT_TRUE(made.ok()) << made.error().text();
  if (parts != nullptr) *parts = made->graph.parts.size();
  return outputsOf(sourceOf(*std::move(made), compilation.interfaces.front(), forBackend(backend)), devices);
}

TEST(Partition, GivesTheBitsOfTheWhole) {
  for (const auto& make : {+[] { return chain({32, 16, 64, 8, 24}); }, +[] { return diamond(); }})
    for (const char* criterion : {"memory", "time", "communication", "pipeline"})
      for (const size_t parts : {2, 3, 5}) {
        size_t made = 0;
        const PartitionRequest request{.criterion = *criterionOf(criterion), .parts = parts};
        EXPECT_EQ(cutOutputs(make(), request, "sim:interpreter sim:interpreter", &made), wholeOutputs(make()))
            << criterion << " in " << parts;
        EXPECT_EQ(made, parts);
      }
}

TEST(Partition, IsAModuleThatPrintsAndParses) {
  const auto made = cut(diamond(), {.parts = 3});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->module->functions().size(), 3U);
  BlobStore blobs;
  const std::string text = print(*made->module, &blobs);
  const auto again = parseModule(text, blobs);
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(print(**again), print(*made->module));
  EXPECT_NE(drawDot(*made).find("cluster_2"), std::string::npos);
}

// Every way to cut a chain, one after the other.
double bestByTrying(const PartitionGraph& graph, size_t parts,
                    const std::function<double(const std::vector<size_t>&)>& price) {
  std::vector<size_t> labels(graph.units.size());
  double best = std::numeric_limits<double>::infinity();
  const std::function<void(size_t, size_t)> go = [&](size_t unit, size_t label) {
    if (unit == labels.size()) {
      if (label + 1 == parts) best = std::min(best, price(labels));
      return;
    }
    for (size_t next = label; next <= std::min(label + (unit > 0 ? 1 : 0), parts - 1); ++next) {
      labels[unit] = next;
      go(unit + 1, next);
    }
  };
  go(0, 0);
  return best;
}

TEST(Partition, IsExactForChains) {
  const Compilation compilation = upToCut(chain({64, 8, 128, 16, 32, 8}));
  const PartitionGraph graph = partitionGraphOf(*compilation.module->functions().front());
  for (const size_t parts : {2, 3, 4}) {
    const auto largest = [&](const std::vector<size_t>& labels) {
      double most = 0;
      for (const PartEstimate& part : estimateParts(graph, labels, parts))
        most = std::max(most, static_cast<double>(part.bytes()));
      return most;
    };
    const auto sent = [&](const std::vector<size_t>& labels) {
      double all = 0;
      for (const PartEstimate& part : estimateParts(graph, labels, parts)) all += static_cast<double>(part.inBytes);
      return all;
    };
    const auto memory = partition(compilation, {.criterion = PartitionCriterion::Memory, .parts = parts},
                                  forBackend(kReferenceBackend));
    const auto communication = partition(compilation, {.criterion = PartitionCriterion::Communication, .parts = parts},
                                         forBackend(kReferenceBackend));
    ASSERT_TRUE(memory.ok() && communication.ok());
    double most = 0, all = 0;
    for (const NetworkPart& part : memory->graph.parts) most = std::max(most, static_cast<double>(part.cost.bytes()));
    for (const auto& facts : communication->facts) all += static_cast<double>(facts.inBytes);
    EXPECT_EQ(most, bestByTrying(graph, parts, largest));
    EXPECT_EQ(all, bestByTrying(graph, parts, sent));
  }
}

TEST(Partition, TakesAsFewPartsAsFit) {
  PartitionRequest request;
  for (int i = 0; i < 4; ++i)
    request.devices.push_back({.name = "card" + std::to_string(i), .backend = "interpreter", .memory = 16000});
  const auto made = cut(chain({32, 40, 48, 56}), request);
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_GT(made->graph.parts.size(), 1U);
  EXPECT_LT(made->graph.parts.size(), 4U);
  for (const NetworkPart& part : made->graph.parts) EXPECT_LE(part.cost.bytes(), 16000);
  request.devices.resize(1);
  const auto refused = cut(chain({32, 40, 48, 56}), request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::TooLarge);
  EXPECT_NE(refused.error().message.find("card0 has 16000 bytes"), std::string::npos) << refused.error().message;
}

TEST(Partition, SendsWhatADeviceLacksElsewhere) {
  PartitionRequest request{.criterion = PartitionCriterion::Support};
  request.devices = {{.name = "card", .backend = "interpreter", .without = {"Tanh"}},
                     {.name = "cpu", .backend = "interpreter"}};
  const auto made = cut(chain({8, 8}), request);
  ASSERT_TRUE(made.ok()) << made.error().text();
  EXPECT_EQ(made->graph.parts.size(), 4U);  // card, cpu, card, cpu
  EXPECT_EQ(made->calledOut.size(), 2U);
  EXPECT_NE(made->calledOut[0].find("goes to cpu"), std::string::npos) << made->calledOut[0];
  EXPECT_EQ(cutOutputs(chain({8, 8}), request, "sim:interpreter,name=card sim:interpreter,name=cpu"),
            wholeOutputs(chain({8, 8})));
}

TEST(Partition, FollowsAPlan) {
  PartitionRequest request;
  request.devices = {{.name = "a", .backend = "interpreter"}, {.name = "b", .backend = "interpreter"}};
  request.byHand = {{"layer0", "b"}, {"layer1", "a"}, {"layer2", "b"}};
  const auto made = cut(chain({8, 8, 8}), request);
  ASSERT_TRUE(made.ok()) << made.error().text();
  ASSERT_EQ(made->graph.parts.size(), 3U);
  EXPECT_EQ(made->graph.parts[0].device, "b");
  EXPECT_EQ(made->graph.parts[1].device, "a");
  request.byHand = {{"nothing", "a"}};
  EXPECT_FALSE(cut(chain({8, 8, 8}), request).ok());
}

#ifdef AGLOW_LLVM
// Layers of narrow floats with a softmax and an epilogue each: the CPU computes such a layer in wider floats, adds in
// the product's loop, and takes the sums of a row as it goes along.
std::unique_ptr<Module> narrowLayers() {
  auto module = std::make_unique<Module>();
  Builder builder(*module->addFunction("main"));
  Value x = builder.cast(builder.input("x", floats({2, 8})), {.to = ElemKind::Float16});
  for (int i = 0; i < 4; ++i) {
    std::vector<double> weights;
    for (int k = 0; k < 8 * 8; ++k) weights.push_back(static_cast<double>((k * 7 + i) % 11) / 8 - 0.6);
    const Type type(ElemKind::Float16, Shape({8, 8}));
    builder.named("layer" + std::to_string(i));
    const Value product = builder.matMul(x, builder.constant(Tensor::fromDoubles(type, weights), "w"));
    const Value bent = builder.tanh(builder.add(product, x));
    x = builder.add(builder.softmax(bent, {.axis = 1}), bent);
  }
  builder.output("y", builder.cast(x, {.to = ElemKind::Float32}));
  return module;
}

TEST(Partition, CutsNothingApartThatRunsAsOne) {
  const std::vector<Tensor> whole = wholeOutputs(narrowLayers(), "cpu");
  for (const size_t parts : {2, 5}) {
    const PartitionRequest request{.criterion = PartitionCriterion::Pipeline, .parts = parts};
    EXPECT_EQ(cutOutputs(narrowLayers(), request, "cpu", nullptr, "cpu"), whole) << parts;
  }
}

TEST(Partition, FollowsAPlanAsFarAsNodesRunApart) {
  PartitionRequest request;
  request.devices = {{.name = "a", .backend = "cpu"}, {.name = "b", .backend = "cpu"}};
  request.byHand = {{"layer0", "a"}, {"layer0.1", "b"}, {"layer1", "b"}};
  const auto made = partition(upToCut(chain({8, 8}), request, "cpu"), request, forBackend("cpu"));
  ASSERT_TRUE(made.ok()) << made.error().text();
  ASSERT_EQ(made->graph.parts.size(), 2U);
  ASSERT_EQ(made->calledOut.size(), 1U);
  EXPECT_NE(made->calledOut[0].find("goes to a with 'layer0"), std::string::npos) << made->calledOut[0];
}
#endif

TEST(Partition, KeepsStateTogether) {
  auto module = std::make_unique<Module>();
  Builder builder(*module->addFunction("main"));
  const Value x = builder.input("x", floats({2, 8}));
  Placeholder* const state = builder.state("sum", Tensor(floats({2, 8})));
  const Value early = builder.add(x, {state, 0});
  const Value late = layer(builder, layer(builder, early, 8, "a"), 8, "b");
  builder.save(late, state);
  builder.output("y", layer(builder, late, 8, "c"));
  const auto made = cut(std::move(module), {.parts = 2});
  ASSERT_TRUE(made.ok()) << made.error().text();
  int holding = 0;
  for (const NetworkPart& part : made->graph.parts) holding += part.hasState ? 1 : 0;
  EXPECT_EQ(holding, 1);
}

}  // namespace
}  // namespace aglow
