// Reading and writing at computed places. An index below zero counts from the end; one outside of its axis is an error
// at run time (RuntimeValue), never a stray access.
#pragma once

#include "ops/kind_sets.h"
#include "ops/onnx_kinds.h"
#include "ops/op_def.h"
#include "ops/type_rules.h"

namespace aglow::records {

inline constexpr AttrDef kAxis{"axis", AttrKind::Int};
inline constexpr AttrDef kReduction{.name = "reduction", .kind = AttrKind::Enum, .choices = "none|add|mul|max|min"};

inline constexpr OpDef kIndex[] = {
    {.name = "Gather",
     .doc = "Slices of data along an axis, one for each index; the indices' shape replaces the axis.",
     .in = {{"data", kinds::any, 'T'}, {"indices", kinds::indices}},
     .attrs = {kAxis},
     .infer = infer::gather,
     .cost = cost::nothing,
     .standard = {"Gather", onnx_kinds::elements},
     .gradient = GradientBy::Rule,
     .picks = true},
    {.name = "GatherElements",
     .doc = "Result element i is data at i, with the position along the axis taken from indices at i.",
     .kind = OpKind::Composite,
     .in = {{"data", kinds::plain, 'T'}, {"indices", kinds::indices}},
     .attrs = {kAxis},
     .infer = infer::gatherElements,
     .onnx = "GatherElements",
     .standard = {"GatherElements", onnx_kinds::elements},
     .gradient = GradientBy::Lowering},
    {.name = "GatherND",
     .doc =
         "Slices of data named by index tuples along the last axis of indices; the first batch_dims axes go in step.",
     .kind = OpKind::Composite,
     .in = {{"data", kinds::plain, 'T'}, {"indices", kinds::indices}},
     .attrs = {{"batch_dims", AttrKind::Int, 0}},
     .infer = infer::gatherNd,
     .onnx = "GatherND",
     .standard = {"GatherND", onnx_kinds::elements, "byTuples"},
     .gradient = GradientBy::Lowering},
    {.name = "Scatter",
     .doc = "A copy of data whose rows named by indices (a vector) are replaced by, or combined with, the rows of "
            "updates.",
     .in = {{"data", kinds::plain, 'T'}, {"indices", kinds::indices}, {"updates", kinds::plain, 'T'}},
     .attrs = {kReduction},
     .infer = infer::scatter,
     .cost = cost::nothing,
     .gradient = GradientBy::Rule,
     .inPlace = true},
    {.name = "ScatterElements",
     .doc = "A copy of data with updates at i written at i, the position along the axis taken from indices at i.",
     .kind = OpKind::Composite,
     .in = {{"data", kinds::plain, 'T'}, {"indices", kinds::indices}, {"updates", kinds::plain, 'T'}},
     .attrs = {kAxis, kReduction},
     .infer = infer::scatterElements,
     .onnx = "ScatterElements",
     .standard = {"ScatterElements", onnx_kinds::elements},
     .gradient = GradientBy::Lowering},
    {.name = "ScatterND",
     .doc = "A copy of data with slices named by index tuples replaced by, or combined with, updates.",
     .kind = OpKind::Composite,
     .in = {{"data", kinds::plain, 'T'}, {"indices", kinds::indices}, {"updates", kinds::plain, 'T'}},
     .attrs = {kReduction},
     .infer = infer::scatterNd,
     .onnx = "ScatterND",
     .standard = {"ScatterND", onnx_kinds::elements, "byTuples"},
     .gradient = GradientBy::Lowering},
};

}  // namespace aglow::records
