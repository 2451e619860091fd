// Operators that only move whole stretches of bytes, written as copies: those are what the next pass takes away.
#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "inst/lifetimes.h"
#include "memory/passes.h"

namespace aglow {

namespace {

// With more operands the bookkeeping of the next pass would take longer than it saves.
constexpr size_t kMostOperands = 4096;

class Rewriter {
public:
  explicit Rewriter(Program& program) : program_(program) {
    for (const Region& region : program.regions) names_.insert(region.name);
  }

  bool run() {
    std::vector<Instr> old = std::move(program_.instrs);
    program_.instrs.clear();
    program_.instrs.reserve(old.size());
    bool changed = false;
    for (Instr& instr : old) {
      const bool copied = instr.kind == Instr::Kind::Compute && asCopies(instr);
      if (!copied) program_.instrs.push_back(std::move(instr));
      changed |= copied;
    }
    if (changed) markLifetimes(program_);
    return changed;
  }

private:
  const Type& type(RegionId id) const { return program_[id].type; }

  bool asCopies(const Instr& instr) {
    if (type(instr.operands[0].region).elements() == 0) return false;
    const OpDef& op = instr.attrs.op();
    if (&op == &opDef(Op::Slice)) return slice(instr);
    if (&op == &opDef(Op::Transpose)) return transpose(instr);
    if (&op == &opDef(Op::Concat)) return concat(instr);
    return false;
  }

  // In one stretch if, seen from the left, single indices come first, then at most one range, then whole axes.
  bool slice(const Instr& instr) {
    const RegionId to = instr.operands[0].region, from = instr.operands[1].region;
    const Shape &whole = type(from).shape(), &part = type(to).shape();
    const std::vector<int64_t>&starts = instr.attrs.ints("starts"), &steps = instr.attrs.ints("steps");
    const std::vector<int64_t> strides = whole.strides();
    int64_t first = 0;
    bool single = true;
    for (int axis = 0; axis < whole.rank(); ++axis) {
      const auto i = static_cast<size_t>(axis);
      const bool dense = part[axis] == 1 || steps.empty() || steps[i] == 1;
      if (!dense || (!single && part[axis] != whole[axis])) return false;
      single = single && part[axis] == 1;
      first += starts[i] * strides[i];
    }
    copy(instr, to, view(from, first * elemBytes(type(from).kind()), type(to)));
    return true;
  }

  // Nothing moves if the axes longer than one stay in order.
  bool transpose(const Instr& instr) {
    const RegionId to = instr.operands[0].region, from = instr.operands[1].region;
    int64_t last = -1;
    for (const int64_t axis : instr.attrs.ints("perm")) {
      if (type(from).dim(static_cast<int>(axis)) == 1) continue;
      if (axis < last) return false;
      last = axis;
    }
    copy(instr, to, view(from, 0, type(to)));
    return true;
  }

  // The operands lie one after the other if all axes before have one index.
  bool concat(const Instr& instr) {
    const RegionId to = instr.operands[0].region;
    const auto axis = static_cast<int>(instr.attrs.integer("axis"));
    for (int i = 0; i < axis; ++i)
      if (type(to).dim(i) != 1) return false;
    if (instr.operands.size() > kMostOperands) return false;
    int64_t offset = 0;
    for (const Operand& operand : instr.inputs()) {
      const Type part = type(operand.region);  // by value: a new view may move the regions
      if (part.bytes() == 0) continue;
      const RegionId place = view(to, offset, part);
      offset += part.bytes();
      copy(instr, place, operand.region);
    }
    return true;
  }

  RegionId view(RegionId base, int64_t offset, Type seen) {
    int& number = parts_[base];
    std::string name;
    do name = fmt::format("{}.part{}", program_[base].name, number++);
    while (!names_.insert(name).second);
    return program_.add({.name = std::move(name), .type = std::move(seen), .source = ViewOf{base, offset}});
  }

  void copy(const Instr& instr, RegionId to, RegionId from) {
    program_.instrs.push_back({.kind = Instr::Kind::Copy,
                               .operands = {{to, Access::Out}, {from, Access::In}},
                               .predicate = instr.predicate,
                               .origin = instr.origin});
  }

  Program& program_;
  std::unordered_set<std::string> names_;
  std::unordered_map<RegionId, int> parts_;  // views made of a region
};

}  // namespace

Result<bool> movesToCopies(Program& program) { return Rewriter(program).run(); }

}  // namespace aglow
