// The phase that fits a graph to a device: how images lie, and filters that are transformed ahead of time.
#pragma once

#include "backends/phases.h"
#include "codegen/clike/launch.h"

namespace aglow::device {

// To stand after "optimize-core". Products read a transposed left side as it lies. 3x3 convolutions of f32 go through
// Winograd's transforms; those of f16 have their channels side by side, with what lies between them, where the device
// multiplies matrices of halves.
Phase layoutPhase(const codegen::DeviceShape& shape);

}  // namespace aglow::device
