// What a backend wants fused: asked for every instruction that might become part of a fused one.
#pragma once

#include <cstdint>
#include <limits>

#include "inst/program.h"
#include "support/decision.h"

namespace aglow {

class FusePolicy {
public:
  virtual ~FusePolicy() = default;

  // Whether a data-parallel instruction, or a reduction of the last axes, may be in a body at all.
  virtual Decision takes(const Program& /*program*/, const Instr& /*instr*/) const { return Decision::yes(); }
  // Whether data-parallel instructions can be fused with the first result of this one, which is neither. It has its
  // plan, where the backend makes plans.
  virtual Decision takesEpilogue(const Program& program, const Instr& anchor) const = 0;
  // Whether this data-parallel instruction, of the shape of the anchor's first result, can be among them. Its operands
  // may be that result, others of the body, or values outside that are broadcast.
  virtual Decision joins(const Program& program, const Instr& anchor, const Instr& candidate) const = 0;
  // The most bytes of one row that a body with reductions keeps from one pass over the row to the next.
  virtual int64_t rowBytes() const { return 32 << 10; }
  // The most operands in memory that a body may have.
  virtual size_t mostOperands() const { return std::numeric_limits<size_t>::max(); }
};

}  // namespace aglow
