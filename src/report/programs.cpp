#include "report/programs.h"

#include "inst/cost.h"
#include "inst/fused.h"
#include "inst/instr_names.h"
#include "memory/place.h"

namespace aglow {

namespace {

nlohmann::json memoryOf(const Program& program) {
  const MemoryReport report = memoryReport(program);
  nlohmann::json buffers = nlohmann::json::array();
  for (const MemoryReport::Interval& buffer : report.buffers)
    buffers.push_back({program[buffer.region].name, program[buffer.region].type.text(), buffer.offset, buffer.bytes,
                       buffer.first, buffer.last});
  return {{"arena_bytes", report.arenaBytes},      {"lower_bound_bytes", report.lowerBound},
          {"weights_bytes", report.constantBytes}, {"input_bytes", report.inputBytes},
          {"output_bytes", report.outputBytes},    {"state_bytes", report.stateBytes},
          {"buffers", std::move(buffers)}};
}

std::string typesOf(const Program& program, const Instr& instr) {
  std::string text;
  for (const Operand& operand : instr.operands)
    if (operand.region != kNoRegion && (operand.access == Access::Out || operand.access == Access::InOut))
      text += (text.empty() ? "" : ", ") + program[operand.region].type.text();
  return text;
}

// The nodes that it came of, the one that takes the most work first.
nlohmann::json nodesOf(const Instr& instr) {
  std::vector<std::string> nodes;
  for (const Instr& step : bodyOf(instr))
    if (std::find(nodes.begin(), nodes.end(), step.origin) == nodes.end()) nodes.push_back(step.origin);
  return nodes;
}

nlohmann::json instructionOf(const Program& program, size_t number) {
  const Instr& instr = program.instrs[number];
  const Cost cost = costOf(program, instr);
  nlohmann::json row = {{"number", number},
                        {"node", instr.origin},
                        {"nodes", instr.computes() ? nodesOf(instr) : nlohmann::json{instr.origin}},
                        {"operators", operatorsOf(instr)},
                        {"type", typesOf(program, instr)},
                        {"kernel", kernelOf(instr)},
                        {"flops", cost.flops},
                        {"bytes", cost.bytes},
                        {"refused", nlohmann::json::array()}};
  if (!instr.plan) return row;
  row["units"] = instr.plan->units;
  row["scratch_bytes"] = instr.plan->scratchBytes;
  for (const Refusal& refusal : instr.plan->refused) row["refused"].push_back({refusal.kernel, refusal.reason});
  return row;
}

}  // namespace

nlohmann::json programJson(const Program& program) {
  nlohmann::json instructions = nlohmann::json::array();
  for (size_t i = 0; i < program.instrs.size(); ++i)
    if (!program.instrs[i].isMarker()) instructions.push_back(instructionOf(program, i));
  return {{"name", program.name},
          {"count", program.instrs.size()},
          {"memory", memoryOf(program)},
          {"instructions", std::move(instructions)}};
}

}  // namespace aglow
