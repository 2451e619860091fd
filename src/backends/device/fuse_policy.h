// What the kernels of a device can fuse.
#pragma once

#include <algorithm>

#include "codegen/clike/launch.h"
#include "fuse/policy.h"

namespace aglow::device {

class DeviceFusePolicy : public FusePolicy {
public:
  explicit DeviceFusePolicy(const codegen::DeviceShape& shape)
      : rowBytes_(std::min<int64_t>(shape.localBytes / 2, 32 << 10)),
        mostOperands_(static_cast<size_t>(codegen::mostOperands(shape))) {}

  Decision takesEpilogue(const Program& /*program*/, const Instr& anchor) const override {
    return codegen::takesEpilogue(anchor.attrs.op()) ? Decision::yes()
                                                     : Decision::no("its kernel stores results itself");
  }
  // Kernels know the place of each result among all, so any operand goes along.
  Decision joins(const Program& /*program*/, const Instr& /*anchor*/, const Instr& /*candidate*/) const override {
    return Decision::yes();
  }
  // Rows lie in one half of local memory, and what reductions need in the other.
  int64_t rowBytes() const override { return rowBytes_; }
  size_t mostOperands() const override { return mostOperands_; }

private:
  int64_t rowBytes_;
  size_t mostOperands_;
};

}  // namespace aglow::device
