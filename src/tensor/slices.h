// Tensors cut along an axis and put side by side again.
#pragma once

#include <span>

#include "tensor/tensor.h"

namespace aglow {

// What lies at an index of an axis, without that axis. Along the first axis the bytes are shared, not copied.
Tensor sliceOf(const Tensor& tensor, int64_t axis, int64_t index);
// `count` indices of an axis from `begin` on. Along the first axis the bytes are shared, not copied.
Tensor stretchOf(const Tensor& tensor, int64_t axis, int64_t begin, int64_t count);
// Tensors of one type along a new axis; at least one.
Tensor stacked(std::span<const Tensor> tensors, int64_t axis);

// A tensor cut or filled up with zeros at the end of its axes, to other extents.
Tensor resized(const Tensor& tensor, const std::vector<int64_t>& dims);

}  // namespace aglow
