#include "cli/plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "inst/fused.h"
#include "inst/instr_names.h"

namespace aglow::cli {

namespace {

// Whether what comes after the kernel is computed on results that it still has in registers.
std::string_view epilogueOf(const Instr& instr) {
  if (!instr.plan || !instr.plan->epilogue) return "-";
  return instr.kind == Instr::Kind::Fused ? "fused" : "unused";
}

// How many instructions each kernel runs, the most frequent first.
std::string countsText(const Program& program) {
  std::map<std::string, int> counts;
  for (const Instr& instr : program.instrs)
    if (instr.plan) ++counts[instr.plan->kernel];
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [kernel, count] : sorted) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kernel, count);
  return text.empty() ? "the backend chooses no kernels" : text;
}

}  // namespace

std::string plansText(const Program& program) {
  constexpr size_t kNode = 36, kInstruction = 28, kKernel = 10;
  size_t node = 4, instruction = 11, kernel = 6;
  const auto widen = [](size_t& width, const std::string& text, size_t most) {
    width = std::max(width, std::min(text.size(), most));
  };
  for (const Instr& instr : program.instrs) {
    if (instr.isMarker()) continue;
    widen(node, instr.origin, kNode);
    widen(instruction, operatorsOf(instr), kInstruction);
    widen(kernel, kernelOf(instr), kKernel);
  }
  const auto line = [&](const std::string& n, const std::string& i, std::string_view k, std::string_view units,
                        std::string_view scratch, std::string_view epilogue) {
    return fmt::format("{:<{}}  {:<{}}  {:<{}} {:>8} {:>10}  {}\n", shortened(n, kNode), node,
                       shortened(i, kInstruction), instruction, k, kernel, units, scratch, epilogue);
  };
  std::string out = line("node", "instruction", "kernel", "units", "scratch", "epilogue");
  for (const Instr& instr : program.instrs) {
    if (instr.isMarker()) continue;
    const auto number = [&](int64_t Plan::* member) { return instr.plan ? fmt::to_string(*instr.plan.*member) : "-"; };
    out += line(instr.origin, operatorsOf(instr), kernelOf(instr), number(&Plan::units), number(&Plan::scratchBytes),
                epilogueOf(instr));
    if (!instr.plan) continue;
    for (const Refusal& refusal : instr.plan->refused)
      out += fmt::format("{:{}}not {}: {}\n", "", node + instruction + 4, refusal.kernel, refusal.reason);
  }
  return out + "kernels: " + countsText(program) + "\n";
}

nlohmann::json plansJson(const Program& program) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Instr& instr : program.instrs) {
    if (instr.isMarker()) continue;
    nlohmann::json row = {{"node", instr.origin}, {"operators", nlohmann::json::array()}, {"kernel", nullptr}};
    const std::span<const Instr> body = bodyOf(instr);
    for (const Instr& step : body) row["operators"].push_back(instrName(step));
    if (instr.plan) {
      const Plan& plan = *instr.plan;
      row["kernel"] = plan.kernel;
      row["units"] = plan.units;
      row["scratch_bytes"] = plan.scratchBytes;
      row["epilogue"] = epilogueOf(instr);
      if (plan.epilogue) row["epilogue_view"] = *plan.epilogue;
      row["refused"] = nlohmann::json::array();
      for (const Refusal& refusal : plan.refused)
        row["refused"].push_back({{"kernel", refusal.kernel}, {"reason", refusal.reason}});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace aglow::cli
