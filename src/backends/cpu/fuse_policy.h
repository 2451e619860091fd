// What the CPU backend's generated code can fuse.
#pragma once

#include "backends/cpu/kernels/plan.h"
#include "fuse/policy.h"

namespace aglow {

class CpuFusePolicy : public FusePolicy {
public:
  explicit CpuFusePolicy(const cpu::Machine& machine) : machine_(machine) {}

  Decision takes(const Program& program, const Instr& instr) const override;
  Decision takesEpilogue(const Program& program, const Instr& anchor) const override;
  Decision joins(const Program& program, const Instr& anchor, const Instr& candidate) const override;

private:
  cpu::Machine machine_;
};

}  // namespace aglow
