// Questions about bodies. They see the body as a list that runs in order; regions that are not local are memory.
#include "inst/fused.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace aglow {

int64_t reducedRow(const Program& program, const Instr& instr) {
  if (opOf(instr.attrs.op()) != Op::Reduce) return 0;
  const Shape& shape = program[instr.inputs()[0].region].type.shape();
  const std::vector<int64_t>& axes = instr.attrs.ints("axes");
  if (axes.empty() || axes.front() != shape.rank() - static_cast<int64_t>(axes.size())) return 0;
  int64_t row = 1;
  for (const int64_t axis : axes) row *= shape[static_cast<int>(axis)];
  return row;
}

std::span<const Instr> bodyOf(const Instr& instr) {
  return instr.kind == Instr::Kind::Fused ? std::span<const Instr>(instr.body) : std::span<const Instr>(&instr, 1);
}

std::vector<const Instr*> bodySteps(const Instr& instr) {
  std::vector<const Instr*> steps;
  for (const Instr& step : bodyOf(instr)) steps.push_back(&step);
  return steps;
}

namespace {

Error noForm(std::string message) { return {.code = Code::BadVerify, .message = std::move(message)}; }

// Whether a value of this shape, broadcast to the loop's shape, is one value a row.
bool isRowwise(const Shape& value, const BodyForm& form) {
  const int missing = form.shape.rank() - value.rank(), rows = form.shape.rank() - form.rowAxes;
  for (int axis = 0; axis < form.shape.rank(); ++axis)
    if ((axis < missing ? 1 : value[axis - missing]) != (axis < rows ? form.shape[axis] : 1)) return false;
  return true;
}

}  // namespace

bool BodyForm::isRowShape(const Shape& value) const {
  const int rows = shape.rank() - rowAxes;
  if (!reduces() || value.rank() < rows || value.rank() > shape.rank()) return false;
  for (int axis = 0; axis < value.rank(); ++axis)
    if (value[axis] != (axis < rows ? shape[axis] : 1)) return false;
  return true;
}

namespace {

class FormCheck {
public:
  FormCheck(const Program& program, BodySteps steps) : program_(program), steps_(steps) {}

  Result<BodyForm> run() {
    AGLOW_OK(findForm());
    for (const Instr* step : steps_) {
      AGLOW_OK(checkStep(*step));
      forEachResult(*step, [&](RegionId result) { inside_.emplace(result, step); });
    }
    return form_;
  }

private:
  const Shape& shape(RegionId id) const { return program_[id].type.shape(); }
  const Shape& resultShape(const Instr& step) const { return shape(step.results()[0].region); }
  bool reduces(const Instr& step) const { return reducedRow(program_, step) > 0; }
  static int rowAxes(const Instr& reduction) { return static_cast<int>(reduction.attrs.ints("axes").size()); }

  // An anchor decides, then a reduction, then any instruction.
  Status findForm() {
    if (steps_.empty()) return noForm("the body is empty");
    const Instr& first = *steps_.front();
    form_.shape = resultShape(first);
    form_.anchored = !first.attrs.op().isDataParallel() && !reduces(first);
    if (form_.anchored) return {};
    const auto reduction =
        std::find_if(steps_.begin(), steps_.end(), [&](const Instr* step) { return reduces(*step); });
    if (reduction == steps_.end()) return {};
    form_.shape = shape((*reduction)->inputs()[0].region);
    form_.rowAxes = rowAxes(**reduction);
    if (reducedRow(program_, **reduction) == 1) return noForm("a reduction of single elements has no place in a body");
    return {};
  }

  Status checkStep(const Instr& step) const {
    if (form_.anchored && &step == steps_.front()) return {};
    if (!step.attrs.op().isDataParallel()) return checkReduction(step);
    const bool whole = resultShape(step) == form_.shape;
    if (!whole && !form_.isRowShape(resultShape(step)))
      return noForm(fmt::format("{} computes {}, the body's loop is over {}", instrName(step), resultShape(step).text(),
                                form_.shape.text()));
    for (const Operand& operand : step.inputs()) {
      const auto inside = inside_.find(operand.region);
      if (inside == inside_.end()) continue;
      if (inside->second->results()[0].region != operand.region)
        return noForm(fmt::format("{} reads another result than the first", instrName(step)));
      if (shape(operand.region) == resultShape(step)) continue;
      if (!whole || !form_.reduces() || !isRowwise(shape(operand.region), form_))
        return noForm(fmt::format("{} reads {} of another shape than its own inside of the body", instrName(step),
                                  program_[operand.region].name));
    }
    return {};
  }

  Status checkReduction(const Instr& step) const {
    if (form_.anchored || !reduces(step)) return noForm(fmt::format("{} stands after the first", instrName(step)));
    if (shape(step.inputs()[0].region) == form_.shape && rowAxes(step) == form_.rowAxes) return {};
    return noForm("the body's reductions are over different rows");
  }

  const Program& program_;
  BodySteps steps_;
  BodyForm form_;
  std::unordered_map<RegionId, const Instr*> inside_;  // the body's values and what computes them
};

}  // namespace

Result<BodyForm> formOf(const Program& program, BodySteps steps) { return FormCheck(program, steps).run(); }

std::vector<int> stagesOf(const Program& program, BodySteps steps) {
  std::vector<int> stages;
  std::unordered_map<RegionId, int> ready;  // the first stage in which a value can be read
  for (const Instr* step : steps) {
    int stage = 0;
    for (const Operand& operand : step->inputs())
      if (const auto it = ready.find(operand.region); it != ready.end()) stage = std::max(stage, it->second);
    stages.push_back(stage);
    const bool reduces = reducedRow(program, *step) > 0;
    forEachResult(*step, [&](RegionId result) { ready[result] = reduces ? stage + 1 : stage; });
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
  // Lowering numbers what it makes of one node: norm.1, norm.2 and so on are norm.
  const auto stemOf = [](std::string_view name) {
    const size_t end = name.find_last_not_of("0123456789");
    const bool numbered = end != std::string_view::npos && end > 0 && end + 1 < name.size() && name[end] == '.';
    return numbered ? name.substr(0, end) : name;
  };
  std::vector<std::string_view> names;
  for (const Instr& instr : body) {
    const std::string_view stem = stemOf(instr.origin);
    const auto it = std::find_if(names.begin(), names.end(), [&](std::string_view n) { return stemOf(n) == stem; });
    if (it == names.end())
      names.emplace_back(instr.origin);
    else if (*it != instr.origin)
      *it = stem;
  }
  std::string joined;
  for (size_t i = 0; i < std::min(names.size(), kNamed); ++i)
    joined += fmt::format("{}{}", i == 0 ? "" : "+", names[i]);
  if (names.size() > kNamed) joined += fmt::format("+{} more", names.size() - kNamed);
  return joined;
}

namespace {

// Whether something after `writer` follows from the input other than through the result.
bool isNeededAfter(const Instr& fused, const Instr& writer, RegionId input, RegionId result) {
  std::unordered_set<RegionId> following{input};
  bool after = false;
  for (const Instr& instr : fused.body) {
    if (&instr == &writer) {
      following.erase(result);
      after = true;
      continue;
    }
    const std::span<const Operand> inputs = instr.inputs();
    if (std::none_of(inputs.begin(), inputs.end(), [&](const Operand& o) { return following.contains(o.region); }))
      continue;
    if (after) return true;
    forEachResult(instr, [&](RegionId made) { following.insert(made); });
  }
  return false;
}

}  // namespace

bool mayOverwriteInBody(const Program& program, const Instr& fused, RegionId input, RegionId result) {
  const Type& type = program[result].type;
  if (input == kNoRegion || program[input].type != type) return false;
  const auto writesResult = [&](const Instr& instr) {
    const std::span<const Operand> results = instr.results();
    return std::any_of(results.begin(), results.end(), [&](const Operand& o) { return o.region == result; });
  };
  const auto writer = std::find_if(fused.body.begin(), fused.body.end(), writesResult);
  if (writer == fused.body.end() || !writer->attrs.op().isDataParallel()) return false;
  const auto reduces = [&](const Instr& instr) { return reducedRow(program, instr) > 0; };
  if (std::any_of(fused.body.begin(), fused.body.end(), reduces)) {
    const std::vector<int> stages = stagesOf(program, bodySteps(fused));
    if (stages[static_cast<size_t>(writer - fused.body.begin())] != *std::max_element(stages.begin(), stages.end()) ||
        isNeededAfter(fused, *writer, input, result))
      return false;
  }

  for (auto it = fused.body.begin(); it != fused.body.end(); ++it) {
    const std::span<const Operand> inputs = it->inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].region != input) continue;
      if (it > writer) {
        if (input == result) continue;
        return false;
      }
      if (it == writer ? !mayOverwrite(program, *it, i) : !reduces(*it) && !it->attrs.op().isDataParallel())
        return false;
      const Type& computed = program[it->results()[0].region].type;
      if (!reduces(*it) && computed.shape() != type.shape()) return false;
    }
  }
  return true;
}

}  // namespace aglow
