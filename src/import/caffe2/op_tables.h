// The tables of handlers of Caffe2's operators, one per theme and file. A new theme is one line here.
#pragma once

#include <span>

#include "import/onnx/op_import.h"

#define AGLOW_CAFFE2_TABLES(X) \
  X(fillRows)                  \
  X(elementwiseRows)           \
  X(formulaRows)               \
  X(windowRows)                \
  X(linearRows)                \
  X(shapeRows)                 \
  X(imageRows)                 \
  X(reduceRows)                \
  X(normalizeRows)             \
  X(lengthsRows)               \
  X(embeddingRows)             \
  X(sparseRows)                \
  X(recurrentRows)             \
  X(int8Rows)

namespace aglow::caffe2 {

#define AGLOW_DECLARE(rows) std::span<const onnx::OpRow> rows();
AGLOW_CAFFE2_TABLES(AGLOW_DECLARE)
#undef AGLOW_DECLARE

}  // namespace aglow::caffe2
