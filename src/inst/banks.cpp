#include "inst/banks.h"

#include <algorithm>

namespace aglow {

static bool isAsynchronous(const Instr& instr) {
  return instr.kind == Instr::Kind::CopyStart || instr.kind == Instr::Kind::CopyWait;
}

Banks::Banks(const Program& program) : extents_(program.extents()), inHost_(program.regions.size()) {
  const auto owned = [&](RegionId id) { return static_cast<size_t>(extents_[static_cast<size_t>(id)].root); };
  for (size_t i = 0; i < program.regions.size(); ++i)
    inHost_[i] =
        program.regions[i].as<ConstantInit>() != nullptr || program.regions[i].as<PlaceholderInit>() != nullptr;
  for (const Instr& instr : program.instrs) {
    if (instr.predicate != kNoRegion) inHost_[owned(instr.predicate)] = false;
    if (isAsynchronous(instr) || instr.isMarker()) continue;
    for (const Operand& operand : instr.operands)
      if (operand.region != kNoRegion) inHost_[owned(operand.region)] = false;
  }
  // Only the device copies, and one of both sides has to be its own.
  for (const Instr& instr : program.instrs)
    if (isAsynchronous(instr) && inHost(instr.operands[0].region) && inHost(instr.operands[1].region))
      for (const Operand& operand : instr.operands) inHost_[owned(operand.region)] = false;
}

bool Banks::travels(const Instr& instr) const {
  return isAsynchronous(instr) && inHost(instr.operands[0].region) != inHost(instr.operands[1].region);
}

std::set<std::string, std::less<>> hostRegions(std::span<const Program> programs) {
  std::set<std::string, std::less<>> host, device;
  for (const Program& program : programs) {
    const Banks banks(program);
    for (size_t i = 0; i < program.regions.size(); ++i)
      if (program.regions[i].declared())
        (banks.inHost(static_cast<RegionId>(i)) ? host : device).insert(program.regions[i].name);
  }
  for (const std::string& name : device) host.erase(name);
  return host;
}

}  // namespace aglow
