// Fused instructions: what their bodies are made of, and what follows from a body.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "inst/program.h"

namespace aglow {

// How many neighbouring elements a Reduce combines into each one, if it reduces the last axes of its operand and no
// others. Otherwise, and for other operators, 0.
int64_t reducedRow(const Program& program, const Instr& instr);

// Instructions that are, or might become, a body.
using BodySteps = std::span<const Instr* const>;
// The body of a fused instruction; any other is its own.
std::span<const Instr> bodyOf(const Instr& instr);
std::vector<const Instr*> bodySteps(const Instr& instr);
// f(region) for the results of a step that are there.
template <class F>
void forEachResult(const Instr& step, F&& f) {
  for (const Operand& result : step.results())
    if (result.region != kNoRegion) f(result.region);
}

// How a body runs as one loop nest. Three forms:
// - data-parallel: every instruction is, and all results have the loop's shape;
// - with reductions: over rows, the last axes of the loop's shape, which every Reduce combines to one value each;
//   data-parallel instructions compute the whole shape, or one value a row (without the last axes, or with 1 for them);
// - anchored: any instruction comes first, and data-parallel ones compute on from its first result, in its shape.
struct BodyForm {
  Shape shape;
  int rowAxes = 0;  // the last axes, which make a row; 0 without reductions
  bool anchored = false;

  bool reduces() const { return rowAxes > 0; }
  bool isRowShape(const Shape& value) const;
};
// BodySteps of no such form are refused with the reason (BadVerify).
Result<BodyForm> formOf(const Program& program, BodySteps steps);

// With reductions, the pass over a row in which each instruction runs: a reduction's result is there in the next one.
// All 0 without.
std::vector<int> stagesOf(const Program& program, BodySteps steps);

// The operands of a fused instruction, as its body has them: what it writes, what it reads before it writes it, and
// scratch, each in the order of first appearance and once.
std::vector<Operand> operandsOf(const Program& program, std::span<const Instr> body);

// The origins of a body as one name: the first few different ones, joined.
std::string joinedOrigin(std::span<const Instr> body);

// Whether a fused instruction may write one of its results over an input of the same type: whatever reads that input
// does so element by element (or, in a reduction, row by row) and no later than the result is written. With reductions,
// the result also has to be written in the last stage, and what comes after it follows from the result alone, because
// values of earlier stages may be computed again in later ones. If both are one region, what is read after the write is
// the result.
bool mayOverwriteInBody(const Program& program, const Instr& fused, RegionId input, RegionId result);

}  // namespace aglow
