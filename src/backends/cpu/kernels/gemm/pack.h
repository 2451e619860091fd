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

// Of i32 that fit into signed bytes: fours of rows or input channels lie together, zeros after the last.
// [k, n] to [P, ceil(k / 4), panel, 4]
Tensor packByteMatrix(const Tensor& b, int64_t panel);
// [O, C / group, kh, kw] to [P, kh, kw, ceil(C / group / 4), panel, 4]
Tensor packByteFilter(const Tensor& filter, int64_t panel);
// [C, 1, kh, kw] to [ceil(C / lanes), kh, kw, lanes]
Tensor packByteDepthwise(const Tensor& filter, int64_t lanes);

}  // namespace aglow::cpu
