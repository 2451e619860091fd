// Partitions as networks for a host, and as drawings.
#include <fmt/format.h>

#include <algorithm>

#include "compile/phases.h"
#include "graph/dot.h"
#include "runtime/module_source.h"
#include "runtime/partition.h"
#include "runtime/partition_build.h"

namespace aglow {

namespace {

// Where the compilation of a part goes on.
Result<std::string> phaseAfter(const std::string& name, const CompileOptions& options) {
  AGLOW_TRY(const std::shared_ptr<const Backend> backend, makeBackend(options));
  bool passed = false;
  for (const Phase& phase : phasesFor(*backend, options)) {
    if (passed) return phase.name;
    passed = phase.name == name;
  }
  AGLOW_CHECK(false, "nothing follows the phase after which networks are cut");
  return std::string();
}

class PartitionSource : public NetworkSource {
public:
  PartitionSource(Partition partition, const Interface& interface, CompileOptions options)
      : spec_(specOf(interface)), partition_(std::move(partition)), options_(std::move(options)) {
    if (options_.backend.empty()) options_.backend = defaultBackend();
  }

  const NetworkSpec& spec() const override { return spec_; }
  const PartGraph& graph() const override { return partition_.graph; }

  Diagnosed<std::shared_ptr<CompiledPart>> compile(size_t part, const std::string& backend) const override {
    const Function& function = *partition_.module->findFunction(partition_.facts[part].function);
    CompileOptions options = options_;
    options.backend = backend;
    options.startFrom = "lower";
    if (backend == options_.backend) {
      auto phase = phaseAfter(partition_.phase, options);
      if (!phase.ok()) return phase.error();
      options.startFrom = *std::move(phase);
      options.fusedNodes = partition_.fusedNodes;
    }
    auto compiled = compileModule(moduleOf(function), options);
    // A composite that the backend kept for the sake of a neighbour, which is in another part now, is lowered.
    if (!compiled.ok() && backend == options_.backend && partition_.fusedNodes == nullptr) {
      options.startFrom = "lower";
      compiled = compileModule(moduleOf(function), options);
    }
    if (!compiled.ok()) return Diagnostics(compiled.diagnostics()).at(function.name());
    return compiledPart(*std::move(compiled), 0);
  }

private:
  NetworkSpec spec_;
  Partition partition_;
  CompileOptions options_;
};

std::string bytesText(int64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.0f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.0f} MB", static_cast<double>(bytes) / 1e6);
}

// When each part may begin, counted in parts on the longest way to it.
std::vector<size_t> stepsOf(const PartGraph& graph) {
  std::vector<size_t> steps(graph.parts.size(), 0);
  for (size_t i = 0; i < steps.size(); ++i)
    for (const auto& [name, wire] : graph.parts[i].inputs)
      if (wire.part != Wire::kNetwork) steps[i] = std::max(steps[i], steps[wire.part] + 1);
  return steps;
}

}  // namespace

std::shared_ptr<const NetworkSource> sourceOf(Partition partition, const Interface& interface, CompileOptions options) {
  return std::make_shared<PartitionSource>(std::move(partition), interface, std::move(options));
}

std::string drawDot(const Partition& partition) {
  constexpr size_t kMostNodes = 80;  // more are only counted
  std::string text = "digraph partition {\n  rankdir=TB; node [shape=box, fontname=Helvetica]; compound=true;\n";
  const std::vector<size_t> steps = stepsOf(partition.graph);
  size_t all = 0;
  for (const Partition::Facts& facts : partition.facts) all += facts.nodes;
  for (size_t i = 0; i < partition.facts.size(); ++i) {
    const Partition::Facts& facts = partition.facts[i];
    const PartCost& cost = partition.graph.parts[i].cost;
    const std::string label = fmt::format("{}{}{}\\nstep {}: {:.0f} us, {} of weights, {} of values", facts.function,
                                          facts.device.empty() ? "" : " on ", escapeDot(facts.device), steps[i] + 1,
                                          cost.microseconds, bytesText(cost.constantBytes), bytesText(cost.arenaBytes));
    text += fmt::format("  subgraph cluster_{} {{\n    style=filled; fillcolor=\"/pastel19/{}\"; label=\"{}\";\n", i,
                        i % 9 + 1, label);
    if (all > kMostNodes) {
      text += fmt::format("    p{} [label=\"{} nodes\"];\n", i, facts.nodes);
    } else {
      const Function& function = *partition.module->findFunction(facts.function);
      std::map<const Node*, size_t> numbers;
      for (const auto& node : function.nodes()) {
        if (node->op() == Op::Save) continue;
        const size_t number = numbers.size();
        numbers[node.get()] = number;
        text += fmt::format("    p{}n{} [label=\"{}\\n{}\"];\n", i, number, node->def().name, escapeDot(node->name()));
        for (const Value value : node->inputs())
          if (value && !value.node->isStorage())
            text += fmt::format("    p{}n{} -> p{}n{};\n", i, numbers.at(value.node), i, number);
      }
      text += fmt::format("    p{} [shape=point, style=invis];\n", i);
    }
    text += "  }\n";
  }
  for (size_t i = 0; i < partition.graph.parts.size(); ++i)
    for (const auto& [name, wire] : partition.graph.parts[i].inputs) {
      const auto* placeholder = static_cast<const Placeholder*>(partition.module->findStorage(name));
      const std::string label = fmt::format("{}\\n{}", escapeDot(name), placeholder->type().text());
      if (wire.part == Wire::kNetwork) {
        text += fmt::format("  \"in:{0}\" [shape=oval, label=\"{1}\"];\n  \"in:{0}\" -> p{2} [lhead=cluster_{2}];\n",
                            escapeDot(wire.name), label, i);
      } else {
        text += fmt::format("  p{0} -> p{1} [ltail=cluster_{0}, lhead=cluster_{1}, label=\"{2}\", penwidth=2];\n",
                            wire.part, i, label);
      }
    }
  for (const Wire& wire : partition.graph.outputs) {
    const std::string& name = partition.graph.parts[wire.part].outputs[wire.output];
    text += fmt::format("  \"out:{0}\" [shape=oval, label=\"{0}\"];\n  p{1} -> \"out:{0}\" [ltail=cluster_{1}];\n",
                        escapeDot(name), wire.part);
  }
  return text + "}\n";
}

}  // namespace aglow
