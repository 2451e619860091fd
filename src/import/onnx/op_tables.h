// The tables of operators' handlers, one per theme and file. A new theme is one line here.
#pragma once

#include <span>

#include "import/onnx/op_import.h"

#define AGLOW_OP_TABLES(X) \
  X(constantRows)          \
  X(shapeRows)             \
  X(padRows)               \
  X(indexRows)             \
  X(legacyRows)            \
  X(elementwiseRows)       \
  X(reduceRows)            \
  X(einsumRows)            \
  X(linearRows)            \
  X(poolRows)              \
  X(quantRows)             \
  X(normalizeRows)         \
  X(recurrentRows)         \
  X(attentionRows)         \
  X(resizeRows)            \
  X(controlRows)           \
  X(sequenceRows)          \
  X(samplingRows)          \
  X(roiRows)               \
  X(windowRows)            \
  X(signalRows)            \
  X(trainingRows)          \
  X(linearAttentionRows)   \
  X(treeRows)              \
  X(mlRows)                \
  X(ngramRows)             \
  X(svmRows)               \
  X(randomRows)            \
  X(contribFusedRows)      \
  X(contribNormRows)       \
  X(contribAttentionRows)  \
  X(contribGroupRows)      \
  X(contribQuantRows)      \
  X(contribBlockRows)      \
  X(contribMiscRows)       \
  X(nchwcRows)             \
  X(hostRows)              \
  X(contribModelRows)      \
  X(refusedRows)

namespace aglow::onnx {

#define AGLOW_DECLARE(rows) std::span<const OpRow> rows();
AGLOW_OP_TABLES(AGLOW_DECLARE)
#undef AGLOW_DECLARE

}  // namespace aglow::onnx
