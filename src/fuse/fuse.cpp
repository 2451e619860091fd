// The pass: finds the bodies, and writes those of more than one step as fused instructions.
#include "fuse/fuse.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

#include "fuse/bodies.h"
#include "inst/lifetimes.h"

namespace aglow {

namespace {

Instr fuse(std::vector<Instr> body, bool anchored, Program& program, const Dependences& dependences) {
  // A value that only the body reads is nowhere else.
  std::unordered_map<RegionId, int32_t> readInside;
  for (const Instr& step : body)
    for (const Operand& input : step.inputs())
      if (input.region != kNoRegion) ++readInside[input.region];
  for (const Instr& step : body)
    forEachResult(step, [&](RegionId result) {
      Region& region = program[result];
      const auto it = readInside.find(result);
      if (region.as<Allocated>() != nullptr && it != readInside.end() && it->second == dependences.reads(result))
        region.source = Local{};
    });
  Instr fused{.kind = Instr::Kind::Fused, .predicate = body.front().predicate, .origin = joinedOrigin(body)};
  if (anchored) fused.plan = std::move(body.front().plan);
  for (Instr& step : body) {
    step.predicate = kNoRegion;
    step.plan.reset();
  }
  fused.operands = operandsOf(program, body);
  fused.body = std::move(body);
  return fused;
}

class Everything final : public FusePolicy {
public:
  Decision takesEpilogue(const Program& /*program*/, const Instr& /*anchor*/) const override { return Decision::yes(); }
  Decision joins(const Program& /*program*/, const Instr& /*anchor*/, const Instr& /*candidate*/) const override {
    return Decision::yes();
  }
};

}  // namespace

const FusePolicy& fuseEverything() {
  static const Everything everything;
  return everything;
}

Result<bool> fuseInstructions(Program& program, const FusePolicy& policy) {
  std::erase_if(program.instrs, [](const Instr& instr) { return instr.isMarker(); });
  const Dependences dependences(program);
  const Bodies bodies(program, dependences, policy);
  std::vector<Instr> old = std::move(program.instrs);
  program.instrs.clear();
  bool changed = false;
  for (int32_t place = 0; place < static_cast<int32_t>(old.size()); ++place) {
    const Bodies::Body* body = bodies.at(place);
    if (body == nullptr) continue;
    std::vector<Instr> steps;
    for (const int32_t step : body->steps) steps.push_back(std::move(old[static_cast<size_t>(step)]));
    const bool fused = steps.size() > 1;
    program.instrs.push_back(fused ? fuse(std::move(steps), body->anchored, program, dependences)
                                   : std::move(steps.front()));
    changed |= fused;
  }
  markLifetimes(program);
  return changed;
}

FusedNodes fusedNodesOf(const Program& program) {
  FusedNodes nodes;
  int32_t number = 0;
  for (const Instr& instr : program.instrs) {
    if (instr.kind != Instr::Kind::Fused) continue;
    for (const Instr& step : instr.body) nodes.instrOf[step.origin] = number;
    ++number;
  }
  return nodes;
}

Result<bool> fuseAs(Program& program, const FusedNodes& nodes) {
  std::erase_if(program.instrs, [](const Instr& instr) { return instr.isMarker(); });
  const Dependences dependences(program);
  std::map<int32_t, size_t> sizes;
  for (const auto& [node, number] : nodes.instrOf) ++sizes[number];
  const auto numberOf = [&](const Instr& instr) -> std::optional<int32_t> {
    const auto found = nodes.instrOf.find(instr.origin);
    if (instr.kind != Instr::Kind::Compute || found == nodes.instrOf.end()) return {};
    return found->second;
  };
  std::vector<Instr> old = std::exchange(program.instrs, {});
  bool changed = false;
  for (size_t begin = 0, end = 0; begin < old.size(); begin = end) {
    const std::optional<int32_t> number = numberOf(old[begin]);
    end = begin + 1;
    if (!number) {
      program.instrs.push_back(std::move(old[begin]));
      continue;
    }
    while (end < old.size() && numberOf(old[end]) == number) ++end;
    AGLOW_CHECK(end - begin == sizes.at(*number), "nodes that run as one are apart at " + old[begin].origin);
    std::vector<const Instr*> steps;
    for (size_t at = begin; at < end; ++at) steps.push_back(&old[at]);
    AGLOW_TRY(const BodyForm form, formOf(program, steps));
    std::vector<Instr> body(std::move_iterator(old.begin() + static_cast<std::ptrdiff_t>(begin)),
                            std::move_iterator(old.begin() + static_cast<std::ptrdiff_t>(end)));
    program.instrs.push_back(fuse(std::move(body), form.anchored, program, dependences));
    changed = true;
  }
  markLifetimes(program);
  return changed;
}

}  // namespace aglow
