// Fully connected layers as matrix products; the quantized ones share this.
#pragma once

#include <vector>

#include "import/caffe2/args.h"

namespace aglow::caffe2 {

struct FcOperands {
  Value rows;                 // [rows, in]
  Value weights;              // [in, out]
  std::vector<int64_t> dims;  // of the result
};

// Operands flattened at axis and axis_w; weights are stored as [out, in], or transposed. BadNode when they do not fit.
FcOperands fcOperands(const OpImport& c, Value x, Value w, bool transposedWeights);

}  // namespace aglow::caffe2
