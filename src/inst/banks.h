// Which memory declared regions lie in, where host and device have one each: a constant or placeholder that only
// copy.start and copy.wait name stays with the host, if the other side of its copies is the device's; everything else
// lies with the device.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "inst/program.h"

namespace aglow {

class Banks {
public:
  explicit Banks(const Program& program);

  bool inHost(RegionId id) const { return inHost_[static_cast<size_t>(extents_[static_cast<size_t>(id)].root)]; }
  // Whether a copy.start or copy.wait is about bytes that go from one memory to the other.
  bool travels(const Instr& instr) const;

private:
  std::vector<Extent> extents_;
  std::vector<bool> inHost_;  // by region that owns bytes
};

// Names of what stays with the host in all programs of a module.
std::set<std::string, std::less<>> hostRegions(std::span<const Program> programs);

}  // namespace aglow
