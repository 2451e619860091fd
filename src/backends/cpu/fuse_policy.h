// What the CPU backend's generated code can fuse.
#pragma once

#include "fuse/policy.h"

namespace aglow {

class CpuFusePolicy : public FusePolicy {
public:
  Decision takes(const Program& program, const Instr& instr) const override;
  Decision takesEpilogue(const Program& program, const Instr& anchor) const override;
  Decision joins(const Program& program, const Instr& anchor, const Instr& candidate) const override;
};

}  // namespace aglow
