// Convolutions of few outputs, row by row.
#pragma once

#include <optional>

#include "codegen/clike/kernel_writer.h"
#include "codegen/clike/sliding.h"
#include "codegen/nest/kinds.h"

namespace aglow::codegen {

// The kernel of a convolution with operands `x` and `filter`, and `finish`: statements on `given`, a sum of `channel`.
// Nothing where tiles are quicker, or a group's items work side by side anyway.
std::optional<Launch> planeConv(KernelWriter& writer, const Sliding& sliding, const std::string& finish);

}  // namespace aglow::codegen
