// aglow partition: a model cut into parts for several devices: where each node goes, what the parts need and send, and
// whether they compute the same as the whole.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/device_plans.h"
#include "cli/model_options.h"
#include "cli/random_inputs.h"
#include "compile/text_files.h"
#include "graph/text.h"
#include "import/onnx/device_plan.h"
#include "runtime/host.h"
#include "runtime/module_source.h"
#include "runtime/partition.h"
#include "support/file.h"
#include "support/file_set.h"
#include "support/quote.h"

namespace aglow::cli {

namespace {

struct PartitionOptions {
  ModelOptions model;
  int parts = 0;
  std::string devices, criterion = "memory", plan, configuration, measured, dot, output;
  bool annotated = false;
  bool json = false, verify = false;
  uint64_t seed = 0;
};

// The model's own annotations: a device of the list for each stage.
Status readAnnotations(const PartitionOptions& options, PartitionRequest& request) {
  AGLOW_TRY(const SharedBytes file, readFile(options.model.model));
  AGLOW_TRY(const onnx::DevicePlan plan, onnx::readDevicePlan(file, options.configuration));
  if (plan.devices > request.devices.size())
    return Error{.code = Code::Usage,
                 .message = fmt::format("configuration {} is for {} devices; --devices names {}",
                                        aglow::quoted(plan.configuration), plan.devices, request.devices.size())};
  for (const auto& [node, device] : plan.at) request.byHand[node] = request.devices[device].name;
  return {};
}

Status readMeasured(const std::string& path, PartitionRequest& request) {
  AGLOW_TRY(const nlohmann::json json, readObject(path));
  for (const auto& [node, microseconds] : json.items()) {
    if (!microseconds.is_number() || microseconds.get<double>() < 0)
      return Error{.code = Code::Usage,
                   .message = fmt::format("{}: {} has no microseconds", path, aglow::quoted(node))};
    request.measured[node] = microseconds.get<double>();
  }
  return {};
}

std::string asText(const Partition& partition) {
  std::string out = fmt::format("{:<8} {:<12} {:>6} {:>12} {:>14} {:>14} {:>12} {:>12}\n", "part", "device", "nodes",
                                "time us", "weights B", "values B", "in B", "out B");
  for (size_t i = 0; i < partition.facts.size(); ++i) {
    const Partition::Facts& facts = partition.facts[i];
    const PartCost& cost = partition.graph.parts[i].cost;
    out += fmt::format("{:<8} {:<12} {:>6} {:>12.0f} {:>14} {:>14} {:>12} {:>12}\n", facts.function,
                       facts.device.empty() ? "any" : facts.device, facts.nodes, facts.microseconds, cost.constantBytes,
                       cost.arenaBytes, facts.inBytes, facts.outBytes);
  }
  for (const std::string& line : partition.calledOut) out += line + "\n";
  return out;
}

nlohmann::ordered_json asJson(const Partition& partition) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (size_t i = 0; i < partition.facts.size(); ++i) {
    const Partition::Facts& facts = partition.facts[i];
    const NetworkPart& part = partition.graph.parts[i];
    nlohmann::ordered_json nodes = nlohmann::ordered_json::array(), inputs = nlohmann::ordered_json::object();
    for (const auto& node : partition.module->findFunction(facts.function)->nodes())
      if (node->op() != Op::Save) nodes.push_back(node->name());
    for (const auto& [name, wire] : part.inputs)
      inputs[name] = wire.part == Wire::kNetwork ? "" : partition.facts[wire.part].function;
    parts.push_back({{"name", facts.function},
                     {"device", facts.device},
                     {"microseconds", facts.microseconds},
                     {"flops", part.cost.flops},
                     {"weights_bytes", part.cost.constantBytes},
                     {"values_bytes", part.cost.arenaBytes},
                     {"in_bytes", facts.inBytes},
                     {"out_bytes", facts.outBytes},
                     {"inputs", inputs},
                     {"outputs", part.outputs},
                     {"nodes", nodes}});
  }
  return {{"parts", parts}, {"called_out", partition.calledOut}};
}

// The inputs of the whole, the same for every run.
Values randomValues(const Interface& interface, uint64_t seed) {
  Rng rng(seed);
  Values values;
  for (const Port& port : interface.inputs)
    if (port.kind == Port::Kind::Tensor) values[port.name] = ModelValue::of(randomTensor(port.type, rng));
  return values;
}

// Whole on a device by itself, and in parts on theirs: the same bits, or a mismatch that names the output.
Diagnosed<Unit> verifyParts(Compilation whole, Partition partition, const CompileOptions& compile,
                            std::vector<DeviceSpec> devices, uint64_t seed) {
  const Interface interface = whole.interfaces.front();
  const std::string backend = compile.backend.empty() ? std::string(defaultBackend()) : compile.backend;
  if (devices.empty()) devices.push_back({.name = backend, .backend = backend});
  std::vector<std::string> names;
  for (const DeviceSpec& device : devices) names.push_back(device.name);
  const std::string alone = "whole";
  devices.push_back({.name = alone, .backend = backend, .lanes = 1});
  auto host = HostManager::create({.devices = std::move(devices)});
  if (!host.ok()) return host.error();
  auto source = sourceOf(std::move(whole));
  if (!source.ok()) return source.error();
  if (auto added = (*host)->addNetwork("whole", *source, {.devices = {alone}}); !added.ok()) return added;
  auto parts = sourceOf(std::move(partition), interface, compile);
  if (auto added = (*host)->addNetwork("parts", parts, {.devices = names}); !added.ok()) return added;
  const Values inputs = randomValues(interface, seed);
  RunReply expected = (*host)->runNetwork({.network = "whole", .inputs = inputs}).get();
  if (!expected.outputs.ok()) return expected.outputs.diagnostics();
  RunReply got = (*host)->runNetwork({.network = "parts", .inputs = inputs}).get();
  if (!got.outputs.ok()) return got.outputs.diagnostics();
  for (size_t i = 0; i < interface.outputs.size(); ++i)
    if (!((*got.outputs)[i].tensor() == (*expected.outputs)[i].tensor()))
      return Error{.code = Code::OutputMismatch,
                   .message = fmt::format("output {} has other bits in parts than whole",
                                          aglow::quoted(interface.outputs[i].name))};
  return Unit{};
}

Diagnosed<Unit> cut(const PartitionOptions& options) {
  auto file = openModel(options.model);
  if (!file.ok()) return file.error();
  auto parsed = options.model.parse();
  if (!parsed.ok()) return parsed.error();
  auto criterion = criterionOf(options.criterion);
  if (!criterion.ok()) return criterion.error();
  auto devices = parseDevices(options.devices);
  if (!devices.ok()) return devices.error();
  PartitionRequest request{.criterion = *criterion,
                           .parts = static_cast<size_t>(options.parts),
                           .devices = {},
                           .byHand = {},
                           .portable = !options.output.empty()};  // nobody knows who will read the file
  for (const DeviceSpec& spec : *devices) request.devices.push_back(partitionDeviceOf(spec));
  if (!options.plan.empty()) {
    auto plan = readDevicePlan(options.plan);
    if (!plan.ok()) return plan.error();
    request.byHand = *std::move(plan);
  }
  if (options.annotated || !options.configuration.empty())
    if (Status read = readAnnotations(options, request); !read.ok()) return read.error();
  if (!options.measured.empty())
    if (Status read = readMeasured(options.measured, request); !read.ok()) return read.error();
  if (!devices->empty()) parsed->compile.backend = devices->front().backend;
  ParsedOptions upTo = *parsed;
  upTo.compile.stopAfter = partitionPhase(request);
  auto graph = compile(*file, upTo);
  if (!graph.ok()) return graph.diagnostics();
  auto made = partition(*graph, request, parsed->compile);
  if (!made.ok()) return std::move(made).error().at(file->path);
  Status written = writeTogether([&](FileSet& files) -> Status {
    if (!options.dot.empty()) AGLOW_OK(files.add(options.dot, drawDot(*made)));
    if (!options.output.empty()) AGLOW_OK(addModule(files, options.output, *made->module));
    return {};
  });
  if (!written.ok()) return written.error();
  std::string text = options.json ? asJson(*made).dump(2) + "\n" : asText(*made);
  if (options.verify) {
    auto whole = compile(*file, *parsed);
    if (!whole.ok()) return whole.diagnostics();
    auto same = verifyParts(*std::move(whole), *std::move(made), parsed->compile, *std::move(devices), options.seed);
    if (!same.ok()) return same;
    if (!options.json) text += "in parts it gives the same bits as whole\n";
  }
  if (Status shown = printOut(text); !shown.ok()) return shown.error();
  return Unit{};
}

}  // namespace

Command partitionCommand() {
  auto options = std::make_shared<PartitionOptions>();
  PartitionOptions& o = *options;
  std::vector<Option> rows = {
      {"--parts", &o.parts, "How many; 0: as few as fit the devices", "N", Between{0, 1024}},
      {"--devices", &o.devices,
       "Of the parts, in order, with spaces between: cpu:0-3,memory=2G sim:cpu,name=card0,memory=64M,copy=1G", "LIST"},
      {"--criterion", &o.criterion,
       "memory: small parts; time: of one request; communication: few bytes between; pipeline: most requests a second; "
       "support: what a device does not know goes to the next",
       "WHAT", OneOf{"memory,time,communication,pipeline,support"}, false, true},
      {"--plan,--partition", &o.plan,
       "By hand: a JSON object of nodes and names of devices; others go with what they read", "FILE.json"},
      {"--annotated", &o.annotated,
       "By the model's own annotations for several devices: a stage for each of --devices"},
      {"--configuration", &o.configuration, "The same, of the configuration with this name", "NAME"},
      {"--measured", &o.measured, "Times instead of estimates: a JSON object of nodes and microseconds", "FILE.json"},
      {"--dot", &o.dot, "Draws the parts, for Graphviz", "FILE.dot"},
      {"--output,-o", &o.output, "The module with a function for each part, for any backend", "FILE.graph"},
      {"--verify", &o.verify, "Runs it whole and in parts on the devices with random inputs, and compares the bits"},
      {"--seed", &o.seed, "Of the random inputs"},
      {"--json", &o.json, "For programs, with the nodes of each part"},
  };
  std::vector<Option> all = o.model.options();
  addTo(all, rows);
  return {.name = "partition",
          .doc = "Cut a model into parts for several devices",
          .options = std::move(all),
          .action = [options] { return finish(cut(*options)); }};
}

}  // namespace aglow::cli
