// aglow inspect: what a model takes, gives and uses; what is supported of it; what memory it needs, and which kernels
// run it; how it looks.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "cli/cli.h"
#include "cli/model_options.h"
#include "cli/model_page.h"
#include "cli/open_sizes.h"
#include "cli/plans.h"
#include "cli/standard_streams.h"
#include "cli/survey.h"
#include "cli/transfers.h"
#include "cli/types_json.h"
#include "compile/packages.h"
#include "compile/text_files.h"
#include "graph/dot.h"
#include "memory/place.h"
#include "support/quote.h"

namespace aglow::cli {

namespace {

struct InspectOptions {
  ModelOptions model;
  bool support = false, memory = false, explain = false, json = false;

  bool compiles() const { return memory || explain || !dot.empty(); }
  std::string dot, html;
};

// The inputs that the file gives no value; all of them if it gives one to each.
std::vector<onnx::ValueInfo> openInputs(const onnx::Graph& graph) {
  std::set<std::string_view> given;
  for (const onnx::TensorProto& tensor : graph.initializers) given.insert(tensor.name);
  std::vector<onnx::ValueInfo> open;
  for (const onnx::ValueInfo& info : graph.inputs)
    if (!given.contains(info.name)) open.push_back(info);
  return open.empty() ? graph.inputs : open;
}

std::string summaryText(const std::string& path, const onnx::Model& model, const Survey& survey) {
  std::string out = path + "\n  ";
  if (model.format == "ONNX") {
    out += fmt::format("ONNX IR {}, by {} {}\n  opsets:", model.irVersion,
                       model.producer.empty() ? "an unnamed producer" : model.producer, model.producerVersion);
    for (const auto& [domain, version] : model.opsets)
      out += fmt::format(" {} {}", domain.empty() ? "ai.onnx" : domain, version);
  } else {
    out += fmt::format("{} net {}", model.format, aglow::quoted(model.graph.name));
  }
  out += fmt::format("\n  {} nodes, {} parameters\n\ninputs:\n", survey.nodes, survey.parameters);
  for (const onnx::ValueInfo& info : openInputs(model.graph))
    out += fmt::format("  {} : {}\n", info.name, onnx::describe(info.type));
  out += "outputs:\n";
  for (const onnx::ValueInfo& info : model.graph.outputs)
    out += fmt::format("  {} : {}\n", info.name, onnx::describe(info.type));
  out += "\noperators:\n";
  for (const auto& [name, use] : survey.ops) out += fmt::format("  {:>6} {}\n", use.count, name);
  return out;
}

nlohmann::ordered_json summaryJson(const onnx::Model& model, const Survey& survey) {
  nlohmann::ordered_json json = {{"format", model.format},
                                 {"ir_version", model.irVersion},
                                 {"producer", model.producer},
                                 {"nodes", survey.nodes},
                                 {"parameters", survey.parameters}};
  for (const auto& [domain, version] : model.opsets) json["opsets"][domain.empty() ? "ai.onnx" : domain] = version;
  for (const onnx::ValueInfo& info : openInputs(model.graph))
    json["inputs"].push_back({{"name", info.name}, {"type", typeJson(info.type)}});
  for (const onnx::ValueInfo& info : model.graph.outputs)
    json["outputs"].push_back({{"name", info.name}, {"type", typeJson(info.type)}});
  for (const auto& [name, use] : survey.ops)
    json["operators"].push_back(
        {{"name", name}, {"version", use.version}, {"count", use.count}, {"supported", use.supported}});
  return json;
}

// The arena against what is alive at most, then the largest buffers with their lifetimes.
std::string memoryText(const MemoryReport& memory, const Program& program) {
  constexpr size_t kShown = 20;
  std::string out = fmt::format(
      "activations {:>14} bytes in one arena (at least {} are alive at once)\nweights     {:>14} bytes\ninputs      "
      "{:>14} bytes\noutputs     {:>14} bytes\n{}\nlargest buffers:\n{:>12} {:>12} {:>8} {:>8}  name\n",
      memory.arenaBytes, memory.lowerBound, memory.constantBytes, memory.inputBytes, memory.outputBytes,
      memory.stateBytes > 0 ? fmt::format("state       {:>14} bytes\n", memory.stateBytes) : "", "offset", "bytes",
      "from", "to");
  std::vector<MemoryReport::Interval> buffers = memory.buffers;
  std::sort(buffers.begin(), buffers.end(),
            [](const auto& a, const auto& b) { return std::pair(-a.bytes, a.region) < std::pair(-b.bytes, b.region); });
  for (size_t i = 0; i < std::min(buffers.size(), kShown); ++i)
    out += fmt::format("{:>12} {:>12} {:>8} {:>8}  {}\n", buffers[i].offset, buffers[i].bytes, buffers[i].first,
                       buffers[i].last, program[buffers[i].region].name);
  return out;
}

nlohmann::ordered_json memoryJson(const MemoryReport& memory, const Program& program) {
  nlohmann::ordered_json json = {{"arena_bytes", memory.arenaBytes},
                                 {"lower_bound_bytes", memory.lowerBound},
                                 {"weights_bytes", memory.constantBytes},
                                 {"input_bytes", memory.inputBytes},
                                 {"output_bytes", memory.outputBytes}};
  if (memory.stateBytes > 0) json["state_bytes"] = memory.stateBytes;
  json["buffers"] = nlohmann::ordered_json::array();
  for (const MemoryReport::Interval& buffer : memory.buffers)
    json["buffers"].push_back({{"name", program[buffer.region].name},
                               {"type", typeJson(program[buffer.region].type)},
                               {"offset", buffer.offset},
                               {"bytes", buffer.bytes},
                               {"from", buffer.first},
                               {"to", buffer.last}});
  return json;
}

std::string packageText(const std::string& path, const PackageFacts& facts) {
  std::string text = fmt::format("{}\n  package with {} bytes of weights\n", path, facts.weightsBytes);
  for (const PackageFacts::Variant& variant : facts.variants)
    text += fmt::format("  code for {}: {} bytes{}\n", variant.target, variant.codeBytes,
                        variant.runsHere ? "" : ", which this processor cannot run");
  return text + "\n";
}

nlohmann::ordered_json packageJson(const PackageFacts& facts) {
  nlohmann::ordered_json json = {{"weights_bytes", facts.weightsBytes}};
  for (const PackageFacts::Variant& variant : facts.variants)
    json["code"].push_back({{"target", variant.target},
                            {"features", variant.features},
                            {"bytes", variant.codeBytes},
                            {"runs_here", variant.runsHere}});
  return json;
}

std::string typeText(const Port& port) {
  if (port.kind == Port::Kind::Sequence) return fmt::format("sequence of {} tensors", port.items.size());
  return port.kind == Port::Kind::None ? "none" : port.type.text();
}

// What the functions of a text form or package take and give.
std::string interfacesText(const Compilation& compiled) {
  std::string text;
  const bool several = compiled.interfaces.size() > 1;
  for (const Interface& interface : compiled.interfaces) {
    if (several) text += fmt::format("function {}\n", interface.function);
    const char* indent = several ? "  " : "";
    for (const Port& port : interface.inputs)
      text += fmt::format("{}input {} : {}\n", indent, port.name, typeText(port));
    for (const Port& port : interface.outputs)
      text += fmt::format("{}output {} : {}\n", indent, port.name, typeText(port));
  }
  if (compiled.module != nullptr) {
    for (const Placeholder* place : compiled.module->placeholders())
      if (place->isState()) text += fmt::format("state {} : {}\n", place->name(), place->type().text());
  } else {
    for (const Region* region : sharedRegions(compiled.programs))
      if (region->isState()) text += fmt::format("state {} : {}\n", region->name, region->type.text());
  }
  return text;
}

nlohmann::ordered_json interfacesJson(const Compilation& compiled) {
  nlohmann::ordered_json functions = nlohmann::ordered_json::array();
  for (const Interface& interface : compiled.interfaces) {
    nlohmann::ordered_json ports = {{"name", interface.function}};
    for (const Port& port : interface.inputs)
      ports["inputs"].push_back({{"name", port.name}, {"type", typeJson(port)}});
    for (const Port& port : interface.outputs)
      ports["outputs"].push_back({{"name", port.name}, {"type", typeJson(port)}});
    functions.push_back(std::move(ports));
  }
  return functions;
}

Diagnosed<Unit> execute(const InspectOptions& inspect) {
  if (!inspect.html.empty()) return writeModelPage(inspect.model, inspect.html);
  const auto failed = [](const auto& result) { return Diagnostics(result.error()); };
  auto options = inspect.model.parse();
  if (!options.ok()) return failed(options);
  auto file = openModel(inspect.model);
  if (!file.ok()) return failed(file);
  nlohmann::ordered_json json;
  std::string text;
  bool runsHere = true;
  std::vector<Error> unsupported;
  if (isPackage(file->path)) {
    const auto facts = inspectPackage(file->path);
    if (!facts.ok()) return failed(facts);
    json["package"] = packageJson(*facts);
    text = packageText(withStdinNamed(file->path), *facts);
    runsHere = std::any_of(facts->variants.begin(), facts->variants.end(), [](const auto& v) { return v.runsHere; });
  }
  if (file->onnx) {
    auto given = readInputs(file->onnx->graph, inspect.model.values, "--value");
    if (!given.ok()) return failed(given);
    options->import.given = *std::move(given);
    if (Diagnostics faults = options->import.tolerance.judge(*file->onnx); !faults.empty())
      return std::move(faults).at(file->path);
    const Survey survey(*file->onnx);
    json = summaryJson(*file->onnx, survey);
    if (inspect.support) {
      ParsedOptions tried = *options;
      const bool assumed = !takeOnes(file->onnx->graph, tried.import).empty();
      auto refused = refusedNodes(*file->onnx, tried, assumed);
      if (!refused.ok()) return Diagnostics(refused.diagnostics()).at(file->path);
      unsupported = *std::move(refused);
      text = supportText(survey, unsupported);
      for (const Error& error : unsupported)
        json["unsupported"].push_back(
            {{"where", error.where}, {"reason", error.message}, {"code", codeInfo(error.code).id}});
    } else if (!inspect.compiles()) {
      text = summaryText(withStdinNamed(inspect.model.model), *file->onnx, survey);
    }
    if (inspect.compiles()) inspect.model.takeOnes(file->onnx->graph, options->import);
  }
  if (inspect.compiles() || (!file->onnx && runsHere)) {
    const auto observer = options->compile.observer;
    options->compile.observer = [&](const StageEvent& event) -> Status {
      if (observer) AGLOW_OK(observer(event));
      const std::string stage = options->compile.stopAfter.empty() ? "optimize" : options->compile.stopAfter;
      if (inspect.dot.empty() || event.graph == nullptr || event.phase != stage || !event.pass.empty()) return {};
      return writeOut(inspect.dot, drawDot(*event.graph));
    };
    auto compiled = compile(*file, *options);
    if (!compiled.ok()) return compiled.diagnostics();
    if ((inspect.memory || inspect.explain) && !compiled->programs.empty()) {
      const bool several = compiled->programs.size() > 1;
      for (const Program& program : compiled->programs) {
        nlohmann::ordered_json& place = several ? json["functions"][program.name] : json;
        if (several) text += fmt::format("{}function {}\n", text.empty() ? "" : "\n", program.name);
        if (inspect.memory) {
          const MemoryReport memory = memoryReport(program);
          place["memory"] = memoryJson(memory, program);
          text += memoryText(memory, program);
          if (const std::optional<Timeline> timeline = timelineOf(program, *compiled->backend)) {
            place["transfers"] = transfersJson(program, *timeline);
            text += transfersText(program, *timeline);
          }
        }
        if (inspect.explain) {
          place["plans"] = plansJson(program);
          text += (inspect.memory ? "\n" : "") + plansText(program);
        }
      }
    } else if (inspect.dot.empty() && !file->onnx) {
      text += interfacesText(*compiled);
      json["functions"] = interfacesJson(*compiled);
    }
  }
  const Status printed = inspect.json ? printJson(json) : printOut(text);
  if (!printed.ok()) return failed(printed);
  if (unsupported.empty()) return Unit{};
  return Error{.code = unsupported.front().code,
               .message = fmt::format("{} nodes are not supported", unsupported.size()),
               .where = file->path};
}

}  // namespace

Command inspectCommand() {
  auto options = std::make_shared<InspectOptions>();
  Command command{
      .name = "inspect",
      .doc = "Show what a model takes, gives and uses",
      .options = options->model.options(),
      .footer =
          "Examples:\n  aglow inspect model.onnx --support\n  aglow inspect model.onnx --dim batch=1 --memory\n"
          "  aglow inspect model.onnx --explain --cpu x86-64-v3\n  aglow inspect model.onnx --html model.html",
      .action = [options] { return finish(execute(*options)); }};
  addTo(command.options,
        {{"--support", &options->support,
          "Which of its operators are supported, and why nodes are not; exit code 3 where one is not"},
         {"--memory", &options->memory, "Compile it and show the memory it needs"},
         {"--explain", &options->explain,
          "Compile it and show which kernel runs each instruction, and why others do not"},
         {"--dot", &options->dot, "Draw the optimised graph (or that of --stop-after) for Graphviz; -: to stdout",
          "FILE"},
         {"--html", &options->html,
          "Compile it, run it for a moment, and write a page: graph, stages, memory, kernels, times", "FILE"},
         {"--json", &options->json, "Output for programs"}});
  return command;
}

}  // namespace aglow::cli
