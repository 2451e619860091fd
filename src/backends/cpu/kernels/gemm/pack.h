// Constant operands in the order in which CPU kernels read them: panels of `panel` neighbouring columns (or output
// channels), filled with zeros after the last one.
#pragma once

#include <functional>

#include "tensor/tensor.h"

namespace aglow::cpu {

// Calls a function for each panel, on the threads that the process has.
void eachPanel(int64_t panels, const std::function<void(int64_t panel)>& pack);

// [k, n] to [P, k, panel], P = ceil(n / panel).
Tensor packMatrix(const Tensor& b, int64_t panel);

// [O, C / group, kh, kw] to [P, kh, kw, C / group, panel], P = ceil(O / panel).
Tensor packFilter(const Tensor& filter, int64_t panel);

// Of i32 that fit into signed bytes, or f32 that are bf16: fours or twos (G) of rows or input channels lie together,
// zeros after the last.
// [k, n] to [P, ceil(k / G), panel, G]
Tensor packNarrowMatrix(const Tensor& b, int64_t panel);
// [O, C / group, kh, kw] to [P, kh, kw, ceil(C / group / G), panel, G]
Tensor packNarrowFilter(const Tensor& filter, int64_t panel);
// Of levels [k, n], one in a byte: words of 32 / bits rows, [P, ceil(k * bits / 32), panel, 4].
Tensor packLevels(const Tensor& levels, int64_t bits, int64_t panel);
// [C, 1, kh, kw] to [ceil(C / lanes), kh, kw, lanes]
Tensor packByteDepthwise(const Tensor& filter, int64_t lanes);

}  // namespace aglow::cpu
