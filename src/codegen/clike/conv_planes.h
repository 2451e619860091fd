// Convolutions of few outputs, row by row.
#pragma once

#include <optional>
#include <vector>

#include "codegen/clike/kernel_writer.h"
#include "codegen/clike/sliding.h"
#include "codegen/nest/kinds.h"

namespace aglow::codegen {

// The kernel of a convolution with operands `x` and `filter`, and `finish`: statements on `given`, a sum of `channel`.
// For processors, and for groups that share local memory; nothing for others, and where other kernels are quicker.
std::optional<Launch> planeConv(KernelWriter& writer, const Sliding& sliding, const std::string& finish);
std::optional<Launch> groupPlaneConv(KernelWriter& writer, const Sliding& sliding, const std::string& finish);

// What the texts of both say of the window, the input and the result y: their sizes along each axis.
std::vector<Word> sizeWords(const Sliding& sliding, const Shape& y);

}  // namespace aglow::codegen
