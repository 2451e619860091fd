// What the kernels of a device can fuse.
#pragma once

#include <algorithm>

#include "codegen/clike/launch.h"
#include "fuse/policy.h"

namespace aglow::device {

class DeviceFusePolicy : public FusePolicy {
public:
  explicit DeviceFusePolicy(int64_t localBytes) : rowBytes_(std::min<int64_t>(localBytes / 2, 32 << 10)) {}

  Decision takesEpilogue(const Program& /*program*/, const Instr& anchor) const override {
    return codegen::takesEpilogue(anchor.attrs.op()) ? Decision::yes()
                                                     : Decision::no("its kernel stores results itself");
  }
  // Kernels know the place of each result among all, so any operand goes along.
  Decision joins(const Program& /*program*/, const Instr& /*anchor*/, const Instr& /*candidate*/) const override {
    return Decision::yes();
  }
  // Rows lie in local memory, beside what reductions need.
  int64_t rowBytes() const override { return rowBytes_; }

private:
  int64_t rowBytes_;
};

}  // namespace aglow::device
