// Who computes what in a program, as far as it binds the order of its instructions.
#pragma once

#include <limits>
#include <vector>

#include "inst/program.h"

namespace aglow {

// Of a program without marks, whose instructions are numbered. A value here is a buffer that one instruction writes as
// a whole, once: its readers come after its producer, and nothing else is to be kept in order. What is written more
// often (a placeholder that is read and saved, bytes written through views) binds its readers to a window between two
// writes, and its writers to their place.
class Dependences {
public:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kEnd = std::numeric_limits<int32_t>::max();
  // A reader may run at any place between the two, both excluded.
  struct Window {
    int32_t after = kNone;
    int32_t before = kEnd;
  };

  explicit Dependences(const Program& program);

  // The instruction that computes the value a region shows; kNone where there is no such value.
  int32_t producer(RegionId region) const;
  const Extent& extent(RegionId region) const { return extents_[static_cast<size_t>(region)]; }
  const Window& window(int32_t at) const { return windows_[static_cast<size_t>(at)]; }
  // Whether all that an instruction writes are values, so that it may move.
  bool movable(int32_t at) const { return movable_[static_cast<size_t>(at)]; }
  // How often a value is read, through views, too.
  int32_t reads(RegionId value) const { return reads_[static_cast<size_t>(value)]; }

private:
  std::vector<Extent> extents_;
  std::vector<int32_t> producers_, reads_;  // by region, of those that own bytes
  std::vector<Window> windows_;             // by instruction
  std::vector<bool> movable_;
};

// f(region) for all that an instruction reads, its predicate included.
template <class F>
void forEachRead(const Instr& instr, F&& f) {
  for (const Operand& operand : instr.operands)
    if (operand.region != kNoRegion && reads(operand.access)) f(operand.region);
  if (instr.predicate != kNoRegion) f(instr.predicate);
}

}  // namespace aglow
