#include "runtime/partition_order.h"

#include <algorithm>

#include "compile/phases.h"
#include "inst/fused.h"
#include "runtime/partition_build.h"

namespace aglow {

namespace {

// The program of the whole with its fused instructions, where the backend fuses any.
Result<Program> fusedProgram(const Function& function, CompileOptions options) {
  AGLOW_TRY(const std::shared_ptr<const Backend> backend, makeBackend(options));
  options.startFrom = "irgen";
  options.stopAfter = phasesFor(*backend, options).find("fuse") != nullptr ? "fuse" : "irgen";
  options.observer = {};
  auto compiled = compileModule(moduleOf(function), options);
  if (!compiled.ok()) return compiled.diagnostics().errors().front();
  return std::move(compiled->programs.front());
}

}  // namespace

Status putInOrder(WholeFunction& whole, const CompileOptions& options) {
  Function& function = *whole.module->functions().front();
  AGLOW_TRY(const Program program, fusedProgram(function, options));
  whole.fusedNodes = std::make_shared<FusedNodes>(fusedNodesOf(program));
  std::map<std::string_view, int64_t> places;
  for (const Instr& instr : program.instrs)
    for (const Instr& step : bodyOf(instr))
      if (!step.isMarker()) places.try_emplace(step.origin, static_cast<int64_t>(places.size()));
  // What is no instruction, a view, stands behind what it reads.
  std::vector<std::pair<int64_t, Node*>> order;
  std::map<const Node*, int64_t> placeOf;
  for (const auto& node : function.nodes()) {
    int64_t place = -1;
    if (const auto found = places.find(node->name()); found != places.end()) {
      place = found->second;
    } else {
      for (const Value value : node->inputs())
        if (value && placeOf.contains(value.node)) place = std::max(place, placeOf.at(value.node));
    }
    placeOf[node.get()] = place;
    order.emplace_back(place, node.get());
  }
  const auto earlier = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(order.begin(), order.end(), earlier);
  for (const auto& [place, node] : order) function.move(node, nullptr);
  return {};
}

}  // namespace aglow
