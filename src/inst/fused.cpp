// Questions about bodies. They see the body as a list that runs in order; regions that are not local are memory.
#include "inst/fused.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace aglow {

bool isDataParallel(const OpDef& op) {
  return op.kind == OpKind::Elementwise || &op == &opDef(Op::Cast) || &op == &opDef(Op::Quantize) ||
         &op == &opDef(Op::Dequantize) || &op == &opDef(Op::Splat);
}

int64_t reducedRow(const Program& program, const Instr& instr) {
  if (&instr.attrs.op() != &opDef(Op::Reduce)) return 0;
  const Shape& shape = program[instr.inputs()[0].region].type.shape();
  const std::vector<int64_t>& axes = instr.attrs.ints("axes");
  int64_t row = 1;
  bool kept = false;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] == 1) continue;
    if (!std::binary_search(axes.begin(), axes.end(), axis))
      kept = true;
    else if (kept)
      return 0;
    else
      row *= shape[axis];
  }
  return row;
}

std::vector<const Instr*> stepsOf(const Instr& fused) {
  std::vector<const Instr*> steps;
  for (const Instr& step : fused.body) steps.push_back(&step);
  return steps;
}

namespace {

Error noForm(std::string message) { return {.code = Code::BadVerify, .message = std::move(message)}; }

// Whether a value of this shape, broadcast to the loop's shape, is one value a row.
bool isRowwise(const Shape& value, const BodyForm& form) {
  int64_t behind = 1;
  for (int axis = form.shape.rank() - 1; axis >= 0; --axis) {
    if (form.shape[axis] == 1) continue;
    const int own = axis - (form.shape.rank() - value.rank());
    const int64_t extent = own < 0 ? 1 : value[own];
    const bool inRow = behind < form.row;
    if (extent != (inRow ? 1 : form.shape[axis])) return false;
    if (inRow) behind *= form.shape[axis];
  }
  return true;
}

class FormCheck {
public:
  FormCheck(const Program& program, Steps steps) : program_(program), steps_(steps) {}

  Result<BodyForm> run() {
    AGLOW_OK(findForm());
    for (const Instr* step : steps_) {
      AGLOW_OK(checkStep(*step));
      for (const Operand& result : step->results()) inside_.emplace(result.region, step);
    }
    return form_;
  }

private:
  const Shape& shape(RegionId id) const { return program_[id].type.shape(); }
  const Shape& resultShape(const Instr& step) const { return shape(step.results()[0].region); }
  bool reduces(const Instr& step) const { return reducedRow(program_, step) > 0; }

  // An anchor decides, then a reduction, then any instruction.
  Status findForm() {
    if (steps_.empty()) return noForm("the body is empty");
    const Instr& first = *steps_.front();
    form_.shape = resultShape(first);
    form_.anchored = !isDataParallel(first.attrs.op()) && !reduces(first);
    if (form_.anchored) return {};
    const auto reduction =
        std::find_if(steps_.begin(), steps_.end(), [&](const Instr* step) { return reduces(*step); });
    if (reduction == steps_.end()) return {};
    form_.shape = shape((*reduction)->inputs()[0].region);
    form_.row = reducedRow(program_, **reduction);
    if (form_.row == 1) return noForm("a reduction that combines nothing has no place in a body");
    return {};
  }

  Status checkStep(const Instr& step) const {
    if (form_.anchored && &step == steps_.front()) return {};
    if (!isDataParallel(step.attrs.op())) return checkReduction(step);
    const bool whole = resultShape(step) == form_.shape;
    if (!whole && !(form_.reduces() && resultShape(step).elements() == form_.shape.elements() / form_.row))
      return noForm(fmt::format("{} computes {}, the body's loop is over {}", instrName(step), resultShape(step).text(),
                                form_.shape.text()));
    for (const Operand& operand : step.inputs()) {
      if (!inside_.contains(operand.region) || shape(operand.region) == resultShape(step)) continue;
      if (!whole || !form_.reduces() || !isRowwise(shape(operand.region), form_))
        return noForm(fmt::format("{} reads {} of another shape than its own inside of the body", instrName(step),
                                  program_[operand.region].name));
    }
    return {};
  }

  Status checkReduction(const Instr& step) const {
    if (form_.anchored || !reduces(step)) return noForm(fmt::format("{} stands behind the first", instrName(step)));
    if (shape(step.inputs()[0].region) == form_.shape && reducedRow(program_, step) == form_.row) return {};
    return noForm("the body's reductions are over different rows");
  }

  const Program& program_;
  Steps steps_;
  BodyForm form_;
  std::unordered_map<RegionId, const Instr*> inside_;  // the body's values and what computes them
};

}  // namespace

Result<BodyForm> formOf(const Program& program, Steps steps) { return FormCheck(program, steps).run(); }

std::vector<int> stagesOf(const Program& program, Steps steps) {
  std::vector<int> stages;
  std::unordered_map<RegionId, int> ready;  // the first stage in which a value can be read
  for (const Instr* step : steps) {
    int stage = 0;
    for (const Operand& operand : step->inputs())
      if (const auto it = ready.find(operand.region); it != ready.end()) stage = std::max(stage, it->second);
    stages.push_back(stage);
    const bool reduces = reducedRow(program, *step) > 0;
    for (const Operand& result : step->results()) ready[result.region] = reduces ? stage + 1 : stage;
  }
  return stages;
}

std::vector<Operand> operandsOf(const Program& program, std::span<const Instr> body) {
  std::vector<Operand> results, inputs, scratch;
  std::unordered_map<RegionId, size_t> resultAt;
  std::unordered_map<RegionId, bool> readFirst;
  const auto outside = [&](RegionId id) { return id != kNoRegion && program[id].as<Local>() == nullptr; };
  for (const Instr& instr : body) {
    for (const Operand& operand : instr.operands)
      if (outside(operand.region) && operand.access == Access::In && !resultAt.contains(operand.region) &&
          readFirst.emplace(operand.region, true).second)
        inputs.push_back(operand);
    for (const Operand& operand : instr.operands) {
      if (!outside(operand.region) || operand.access == Access::In) continue;
      if (operand.access == Access::Scratch)
        scratch.push_back(operand);
      else if (resultAt.emplace(operand.region, results.size()).second)
        results.push_back({operand.region, readFirst.contains(operand.region) ? Access::InOut : Access::Out});
    }
  }
  std::erase_if(inputs, [&](const Operand& operand) { return resultAt.contains(operand.region); });
  results.insert(results.end(), inputs.begin(), inputs.end());
  results.insert(results.end(), scratch.begin(), scratch.end());
  return results;
}

std::string joinedOrigin(std::span<const Instr> body) {
  constexpr size_t kNamed = 3;
  std::vector<std::string_view> names;
  for (const Instr& instr : body)
    if (std::find(names.begin(), names.end(), instr.origin) == names.end()) names.push_back(instr.origin);
  std::string joined;
  for (size_t i = 0; i < std::min(names.size(), kNamed); ++i)
    joined += fmt::format("{}{}", i == 0 ? "" : "+", names[i]);
  if (names.size() > kNamed) joined += fmt::format("+{} more", names.size() - kNamed);
  return joined;
}

bool mayOverwriteInBody(const Program& program, const Instr& fused, RegionId input, RegionId result) {
  const Type& type = program[result].type;
  if (input == kNoRegion || program[input].type != type) return false;
  const auto writesResult = [&](const Instr& instr) {
    const std::span<const Operand> results = instr.results();
    return std::any_of(results.begin(), results.end(), [&](const Operand& o) { return o.region == result; });
  };
  const auto writer = std::find_if(fused.body.begin(), fused.body.end(), writesResult);
  if (writer == fused.body.end() || !isDataParallel(writer->attrs.op())) return false;
  const auto reduces = [&](const Instr& instr) { return reducedRow(program, instr) > 0; };
  if (std::any_of(fused.body.begin(), fused.body.end(), reduces) && writer + 1 != fused.body.end()) return false;

  for (auto it = fused.body.begin(); it != fused.body.end(); ++it) {
    const std::span<const Operand> inputs = it->inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].region != input) continue;
      if (it > writer) {
        if (input == result) continue;
        return false;
      }
      if (it == writer ? !mayOverwrite(program, *it, i) : !reduces(*it) && !isDataParallel(it->attrs.op()))
        return false;
      const Type& computed = program[it->results()[0].region].type;
      if (!reduces(*it) && computed.shape() != type.shape()) return false;
    }
  }
  return true;
}

}  // namespace aglow
