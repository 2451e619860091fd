// From a graph, after any phase, to an ONNX model: operators that ONNX has as standard nodes, all others as nodes of
// the domain "ai.aglow" (own_domain.h). import(export(f)) computes what f computes.
#pragma once

#include "graph/module.h"
#include "import/onnx/proto.h"

namespace aglow::onnx {

// Inputs are the module's placeholders that the function does not write, outputs those it does, under their names;
// bytes that are not UTF-8 are replaced. Tensors share the constants' bytes. UnsupportedFeature when a placeholder is
// both read and written, which ONNX cannot express.
Result<Model> exportModel(const aglow::Function& function);

}  // namespace aglow::onnx
