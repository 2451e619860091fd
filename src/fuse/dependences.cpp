// Three walks: over what is written, then forwards and backwards over reads of what is written more than once.
#include "fuse/dependences.h"

#include <algorithm>

namespace aglow {

Dependences::Dependences(const Program& program)
    : extents_(program.extents()),
      producers_(program.regions.size(), kNone),
      reads_(program.regions.size()),
      windows_(program.instrs.size()),
      movable_(program.instrs.size()) {
  const auto count = static_cast<int32_t>(program.instrs.size());
  const auto instr = [&](int32_t at) -> const Instr& { return program.instrs[static_cast<size_t>(at)]; };
  const auto root = [&](RegionId id) { return static_cast<size_t>(extent(id).root); };
  const auto forEachWrite = [](const Instr& i, auto&& f) {
    for (const Operand& operand : i.operands)
      if (operand.region != kNoRegion && writes(operand.access)) f(operand);
  };

  std::vector<bool> many(program.regions.size());  // written more than once, in parts, or over a given value
  for (int32_t at = 0; at < count; ++at)
    forEachWrite(instr(at), [&](const Operand& operand) {
      const Region& owner = program.regions[root(operand.region)];
      const auto* placeholder = owner.as<PlaceholderInit>();
      const bool fresh =
          owner.as<Allocated>() != nullptr || (placeholder != nullptr && placeholder->access == Access::Out);
      const bool whole = operand.access == Access::Out && program[operand.region].type.bytes() == owner.type.bytes();
      if (!fresh || !whole || producers_[root(operand.region)] != kNone) many[root(operand.region)] = true;
      producers_[root(operand.region)] = at;
    });
  for (size_t i = 0; i < many.size(); ++i)
    if (many[i]) producers_[i] = kNone;

  std::vector<int32_t> last(program.regions.size(), kNone);  // the nearest write of those
  for (int32_t at = 0; at < count; ++at) {
    movable_[static_cast<size_t>(at)] = true;
    forEachRead(instr(at), [&](RegionId id) {
      ++reads_[root(id)];
      int32_t& after = windows_[static_cast<size_t>(at)].after;
      after = std::max(after, last[root(id)]);
    });
    forEachWrite(instr(at), [&](const Operand& operand) {
      if (!many[root(operand.region)]) return;
      movable_[static_cast<size_t>(at)] = false;
      last[root(operand.region)] = at;
    });
  }
  std::fill(last.begin(), last.end(), kEnd);
  for (int32_t at = count - 1; at >= 0; --at) {
    forEachRead(instr(at), [&](RegionId id) {
      int32_t& before = windows_[static_cast<size_t>(at)].before;
      before = std::min(before, last[root(id)]);
    });
    forEachWrite(instr(at), [&](const Operand& operand) {
      if (many[root(operand.region)]) last[root(operand.region)] = at;
    });
  }
}

int32_t Dependences::producer(RegionId region) const { return producers_[static_cast<size_t>(extent(region).root)]; }

}  // namespace aglow
