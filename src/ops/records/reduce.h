// Operators along axes: reductions, prefix scans, selection of the largest.
#pragma once

#include "ops/kind_sets.h"
#include "ops/onnx_kinds.h"
#include "ops/op_def.h"
#include "ops/type_rules.h"

namespace aglow::records {

inline constexpr OpDef kReduce[] = {
    {.name = "Reduce",
     .doc = "The elements along the axes combined into one. Over no elements the result is the combination's neutral "
            "value (for max and min the lowest and highest of the kind; a mean of integers is 0, of floats NaN). NaN "
            "wins in "
            "max and min. Bool takes max (any) and min (all). Means of integers truncate.",
     .in = {{"x", kinds::plain, 'T'}},
     .attrs = {{.name = "kind", .kind = AttrKind::Enum, .choices = "sum|mean|prod|max|min"},
               {.name = "axes", .kind = AttrKind::Ints, .doc = "ascending; none means that nothing is reduced"},
               {"keepdims", AttrKind::Bool, 1}},
     .infer = infer::reduce,
     .cost = cost::everyInput,
     .standard = {"", onnx_kinds::elements, "reduce"},
     .gradient = GradientBy::Rule},
    {.name = "ArgReduce",
     .doc = "The index (i64) of the largest or smallest element along an axis. NaN wins in both.",
     .in = {{"x", kinds::numbers}},
     .attrs = {{.name = "kind", .kind = AttrKind::Enum, .choices = "max|min"},
               {"axis", AttrKind::Int},
               {"keepdims", AttrKind::Bool, 1},
               {.name = "last",
                .kind = AttrKind::Bool,
                .number = 0,
                .doc = "the last of equal elements instead of the first"}},
     .infer = infer::argReduce,
     .cost = cost::everyInput,
     .standard = {"", onnx_kinds::numbers, "argReduce"},
     .gradient = GradientBy::Zero},
    {.name = "Scan",
     .doc = "Running sum or product along an axis.",
     .in = {{"x", kinds::numbers, 'T'}},
     .attrs = {{.name = "kind", .kind = AttrKind::Enum, .choices = "sum|prod"},
               {"axis", AttrKind::Int},
               {"exclusive", AttrKind::Bool, 0},
               {"reverse", AttrKind::Bool, 0}},
     .infer = infer::scan,
     .cost = cost::once,
     .standard = {"CumSum", onnx_kinds::floats | onnx_kinds::words, "scan"},
     .gradient = GradientBy::Rule},
    {.name = "TopK",
     .doc = "The k largest (or smallest) elements along an axis with their indices (i64), best first; the lower index "
            "wins between equals. NaN counts as the largest.",
     .in = {{"x", kinds::numbers, 'T'}},
     .out = {{"values"}, {"indices"}},
     .attrs = {{"k", AttrKind::Int}, {"axis", AttrKind::Int}, {"largest", AttrKind::Bool, 1}},
     .infer = infer::topK,
     .cost = cost::nothing,
     .standard = {"TopK", onnx_kinds::numbers, "topK"},
     .gradient = GradientBy::Rule},
};

}  // namespace aglow::records
