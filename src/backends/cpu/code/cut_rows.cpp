#include "backends/cpu/code/cut_rows.h"

#include <algorithm>

#include "backends/cpu/code/plans.h"
#include "inst/chain.h"
#include "inst/rows.h"

namespace aglow {

namespace {

// Units that are worth their while for any number of threads.
constexpr int64_t kMostParts = 64;

// Every part belongs to rows of all results.
bool partsAreRows(const Program& program, const Instr& instr) {
  const Cut& cut = *instr.plan->cut;
  const size_t results = instr.results().size();
  const bool leading = cut.images > 1 || std::all_of(cut.outer.begin(), cut.outer.begin() + results,
                                                     [](int64_t outer) { return outer <= 1; });
  return leading && checkCut(program, instr).ok();
}

std::optional<Plan> planByRows(const Program& program, const Instr& instr, int64_t rows, const cpu::Machine& machine) {
  const auto tried = [&](int64_t axis, int64_t images, int64_t parts) -> std::optional<Plan> {
    Instr cut = instr;
    cut.plan = cpu::cutPlan(program, instr, axis, images, parts, machine);
    if (!cut.plan || !partsAreRows(program, cut)) return std::nullopt;
    return std::move(cut.plan);
  };
  if (instr.plan->isLoops()) return tried(0, 1, rows);
  if (!instr.plan->epilogue) return std::nullopt;
  const std::array<int64_t, 4>& view = *instr.plan->epilogue;
  // Rows are images, of which each may have several parts for the threads, or the first axis of one image.
  const bool images = view[0] == rows;
  if (!images && view[0] != 1) return std::nullopt;
  for (int64_t axis = 1; axis < 4; ++axis) {
    const int64_t extent = view[static_cast<size_t>(axis)];
    const int64_t most = images ? std::min(extent, std::max<int64_t>(kMostParts / rows, 1)) : rows;
    for (int64_t parts = images || extent == rows ? most : 0; parts >= (images ? 1 : 2); --parts)
      if (extent % parts == 0)
        if (std::optional<Plan> plan = tried(axis, view[0], parts)) return plan;
    if (!images && extent != 1) break;
  }
  return std::nullopt;
}

}  // namespace

bool cutRows(Program& program, const cpu::Machine& machine) {
  bool changed = false;
  for (Instr& instr : program.instrs) {
    const int64_t rows = predicateRows(program, instr);
    if (rows == 0 || !instr.plan || instr.plan->units < 1) continue;
    std::optional<Plan> plan = planByRows(program, instr, rows, machine);
    if (!plan) continue;
    instr.plan = std::move(plan);
    changed = true;
  }
  return changed;
}

}  // namespace aglow
