// Whole models and random graphs, cut into 2, 3 and 5 parts by each criterion and run on simulated accelerators and
// sets of cores: the same bits as uncut.
//
//     partition_bits [--sample N] FOLDER|MODEL.onnx…     every N-th way to cut; a folder holds NAME/model.onnx
//     partition_bits MODEL.onnx=3:pipeline…              one way
//     partition_bits --random COUNT [--seed S]           graphs of the differential fuzzer, each cut in one way
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>

#include "../differential/case.h"
#include "dynamic/whole_model.h"
#include "import/model_file.h"
#include "import/onnx/value_file.h"
#include "runtime/device.h"
#include "runtime/host.h"
#include "runtime/module_source.h"
#include "runtime/partition.h"
#include "support/rng.h"

namespace aglow {
namespace {

constexpr size_t kParts[] = {2, 3, 5};
constexpr PartitionCriterion kCriteria[] = {PartitionCriterion::Memory, PartitionCriterion::Time,
                                            PartitionCriterion::Communication, PartitionCriterion::Pipeline};

struct Counts {
  int same = 0, differ = 0, notCut = 0;
};

struct Way {
  size_t parts;
  PartitionCriterion criterion;
};
std::vector<Way> allWays() {
  std::vector<Way> ways;
  for (const size_t parts : kParts)
    for (const PartitionCriterion criterion : kCriteria) ways.push_back({parts, criterion});
  return ways;
}

std::unique_ptr<HostManager> makeHost() {
  // The same code for all of them: each part is compiled once, and runs on both kinds.
  auto devices = parseDevices("sim:cpu,name=card0,latency=10us sim:cpu,name=card1,copy=1G cpu:0 cpu:1");
  if (devices.ok())
    if (auto host = HostManager::create({.devices = *devices}); host.ok()) return *std::move(host);
  // A machine of one core.
  return *HostManager::create({.devices = *parseDevices("sim:cpu,name=card0 sim:cpu,name=card1 cpu:0")});
}

Tensor drawn(const Type& type, Rng& rng) {
  std::vector<double> numbers(static_cast<size_t>(type.elements()));
  const bool real = isFloat(type.kind());
  for (double& number : numbers) number = real ? rng.real(-1, 1) : static_cast<double>(rng.between(0, 1));
  return Tensor::fromDoubles(type, numbers);
}

std::string runBoth(HostManager& host, const Values& inputs, const std::vector<ModelValue>& wanted) {
  // Several at once, so that all replicas are used.
  std::vector<std::future<RunReply>> replies;
  for (int i = 0; i < 4; ++i) replies.push_back(host.runNetwork({.network = "parts", .inputs = inputs}));
  for (std::future<RunReply>& future : replies) {
    RunReply reply = future.get();
    if (!reply.outputs.ok()) return reply.outputs.diagnostics().errors().front().text();
    for (size_t i = 0; i < wanted.size(); ++i)
      if (!((*reply.outputs)[i].tensor() == wanted[i].tensor())) return fmt::format("output {} has other bits", i);
  }
  return {};
}

// Why a way to cut gives something else; empty where it does not.
std::string tryWay(HostManager& host, const Compilation& graph, const Way& way, const CompileOptions& options,
                   const Values& inputs, const std::vector<ModelValue>& wanted) {
  auto made = partition(graph, {.criterion = way.criterion, .parts = way.parts}, options);
  if (!made.ok()) return made.error().text();
  const bool hasState = std::any_of(made->graph.parts.begin(), made->graph.parts.end(),
                                    [](const NetworkPart& part) { return part.hasState; });
  const auto source = sourceOf(*std::move(made), graph.interfaces.front(), options);
  const auto added = host.addNetwork("parts", source, {.replicas = hasState ? 1 : 2});
  if (!added.ok()) return added.diagnostics().errors().front().text();
  const std::string why = runBoth(host, inputs, wanted);
  (void)host.removeNetwork("parts");
  return why;
}

// The outputs of the whole, or why there are none.
Diagnosed<std::vector<ModelValue>> runWhole(HostManager& host, Compilation whole, const Values& inputs) {
  auto source = sourceOf(std::move(whole));
  if (!source.ok()) return source.error();
  if (auto added = host.addNetwork("whole", *source); !added.ok()) return added.diagnostics();
  RunReply reply = host.runNetwork({.network = "whole", .inputs = inputs}).get();
  (void)host.removeNetwork("whole");
  return std::move(reply.outputs);
}

bool isCuttable(const Compilation& graph, const CompileOptions& options) {
  return graph.interfaces.size() == 1 && partition(graph, {.parts = 2}, options).ok();
}

// The sizes, and values, of the model's first data set.
onnx::ImportOptions sizesOf(const onnx::Model& model, const std::string& path, Values& inputs) {
  onnx::ImportOptions import;
  size_t number = 0;
  for (const onnx::ValueInfo& info : model.graph.inputs) {
    const bool preset = std::any_of(model.graph.initializers.begin(), model.graph.initializers.end(),
                                    [&](const onnx::TensorProto& tensor) { return tensor.name == info.name; });
    if (preset) continue;
    const auto file =
        std::filesystem::path(path).parent_path() / "test_data_set_0" / fmt::format("input_{}.pb", number++);
    auto value = onnx::readProtoValue(file, info.type);
    if (!value.ok() || !value->value.isTensor()) continue;
    import.shapes[info.name] = value->value.tensor().type().shape().dims();
    inputs[info.name] = std::move(value->value);
  }
  return import;
}

// Inputs of a few whole numbers become constants.
void fixNumbers(onnx::ImportOptions& import, Values& inputs) {
  constexpr int64_t kFew = 16;
  for (auto it = inputs.begin(); it != inputs.end();) {
    const Type& type = it->second.tensor().type();
    if (isFloat(type.kind()) || type.elements() > kFew) {
      ++it;
      continue;
    }
    import.shapes.erase(it->first);
    import.given[it->first] = std::move(it->second);
    it = inputs.erase(it);
  }
}

// A model, and how it is to be cut where the word says so.
struct Wanted {
  std::string path;
  std::optional<Way> way;
  auto operator<=>(const Wanted& other) const { return path <=> other.path; }
};
Wanted wantedOf(const std::string& word) {
  const size_t equals = word.find('='), colon = word.find(':', equals);
  if (equals == std::string::npos || colon == std::string::npos) return {word, std::nullopt};
  return {word.substr(0, equals), Way{.parts = std::strtoull(word.c_str() + equals + 1, nullptr, 10),
                                      .criterion = *criterionOf(word.substr(colon + 1))}};
}

void checkModel(const Wanted& wanted, size_t sample, size_t& number, Counts& counts) {
  const std::string& path = wanted.path;
  const std::string name = std::filesystem::path(path).parent_path().filename().string();
  const auto note = [&](std::string_view verdict, const std::string& why) {
    std::cout << fmt::format("{} {}: {}\n", verdict, name, why) << std::flush;
  };
  std::vector<Way> ways;
  if (wanted.way)
    ways.push_back(*wanted.way);
  else
    for (const Way& way : allWays())
      if (number++ % sample == 0) ways.push_back(way);
  if (ways.empty()) return;
  auto model = readModelFile(path);
  CompileOptions options;
  options.backend = "cpu";
  CompileOptions upTo = options;
  upTo.stopAfter = partitionPhase({});
  Values inputs;
  onnx::ImportOptions import = sizesOf(*model, path, inputs);
  auto graph = compileModel(*model, upTo, import);
  if (!graph.ok() && graph.diagnostics().errors().front().code == Code::DynamicShape) {
    // Shapes depend on a value: whole numbers are what they were, once and for all.
    fixNumbers(import, inputs);
    graph = compileModel(*model, upTo, import);
  }
  if (!graph.ok() || !isCuttable(*graph, options)) {
    ++counts.notCut;
    note("NOT CUT", graph.ok() ? "it takes or gives more than tensors, or has one unit"
                               : graph.diagnostics().errors().front().text());
    return;
  }
  const std::unique_ptr<HostManager> host = makeHost();
  Rng rng(7);
  for (const Port& port : graph->interfaces.front().inputs)
    if (port.kind == Port::Kind::Tensor && !inputs.contains(port.name))
      inputs[port.name] = ModelValue::of(drawn(port.type, rng));
  auto whole = compileModel(*model, options, import);
  auto expected = runWhole(*host, *std::move(whole), inputs);
  if (!expected.ok()) {
    ++counts.notCut;
    note("NOT RUN", expected.diagnostics().errors().front().text());
    return;
  }
  for (const Way& way : ways) {
    const std::string why = tryWay(*host, *graph, way, options, inputs, *expected);
    ++(why.empty() ? counts.same : counts.differ);
    if (!why.empty()) note("DIFFERS", fmt::format("{} parts by {}: {}", way.parts, criterionName(way.criterion), why));
  }
  note("done", fmt::format("{} ways", ways.size()));
}

void checkRandom(uint64_t seed, HostManager& host, Counts& counts) {
  // Much is compiled and little is run.
  const differential::Case drawnCase = differential::drawCase(seed, {.nodes = 12});
  const auto copy = [&] { return differential::cloned(drawnCase).module; };
  CompileOptions options;
  options.backend = "cpu";
  options.target.optLevel = 0;
  CompileOptions upTo = options;
  upTo.stopAfter = partitionPhase({});
  auto graph = compileModule(copy(), upTo);
  auto whole = compileModule(copy(), options);
  if (!graph.ok() || !whole.ok() || !isCuttable(*graph, options)) {
    ++counts.notCut;
    return;
  }
  Values inputs;
  for (const auto& [name, tensor] : drawnCase.inputs) inputs[name] = ModelValue::of(tensor);
  auto wanted = runWhole(host, *std::move(whole), inputs);
  if (!wanted.ok()) {
    ++counts.notCut;  // values that a run refuses
    return;
  }
  const std::vector<Way> ways = allWays();
  const Way& way = ways[seed % ways.size()];
  const std::string why = tryWay(host, *graph, way, options, inputs, *wanted);
  ++(why.empty() ? counts.same : counts.differ);
  if (!why.empty())
    std::cout << fmt::format("DIFFERS seed {} in {} parts by {}: {}\n", seed, way.parts, criterionName(way.criterion),
                             why)
              << std::flush;
}

int run(const std::vector<std::string>& words) {
  Counts counts;
  size_t sample = 1, number = 0;
  uint64_t random = 0, seed = 0;
  std::vector<std::string> paths;
  for (size_t i = 0; i < words.size(); ++i) {
    const auto value = [&] { return std::strtoull(words.at(++i).c_str(), nullptr, 10); };
    if (words[i] == "--sample")
      sample = std::max<size_t>(value(), 1);
    else if (words[i] == "--random")
      random = value();
    else if (words[i] == "--seed")
      seed = value();
    else
      paths.push_back(words[i]);
  }
  std::vector<Wanted> models;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      models.push_back(wantedOf(path));
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (std::filesystem::exists(entry.path() / "model.onnx"))
        models.push_back({(entry.path() / "model.onnx").string(), std::nullopt});
  }
  std::sort(models.begin(), models.end());
  for (const Wanted& model : models) checkModel(model, sample, number, counts);
  if (random > 0) {
    const std::unique_ptr<HostManager> host = makeHost();
    for (uint64_t i = 0; i < random; ++i) checkRandom(seed + i, *host, counts);
  }
  std::cout << fmt::format("{} alike, {} differ, {} not cut\n", counts.same, counts.differ, counts.notCut);
  return counts.differ > 0 || counts.same == 0 ? 1 : 0;
}

}  // namespace
}  // namespace aglow

int main(int argc, char** argv) { return aglow::run({argv + 1, argv + argc}); }
