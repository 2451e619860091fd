// Normalisations: composites of reductions and elementwise operators that later stages may want whole.
#pragma once

#include "ops/kind_sets.h"
#include "ops/onnx_kinds.h"
#include "ops/op_def.h"
#include "ops/type_rules.h"

namespace aglow::records {

inline constexpr AttrDef kEpsilon{"epsilon", AttrKind::Float, 1e-5};

inline constexpr OpDef kNormalize[] = {
    {.name = "Softmax",
     .doc = "exp(x) divided by its sum along an axis.",
     .kind = OpKind::Composite,
     .in = {{"x", kinds::floats, 'T'}},
     .attrs = {{"axis", AttrKind::Int, -1}},
     .infer = infer::softmax,
     .standard = {"Softmax", onnx_kinds::floats}},
    {.name = "LogSoftmax",
     .doc = "The logarithm of Softmax.",
     .kind = OpKind::Composite,
     .in = {{"x", kinds::floats, 'T'}},
     .attrs = {{"axis", AttrKind::Int, -1}},
     .infer = infer::softmax,
     .standard = {"LogSoftmax", onnx_kinds::floats}},
    {.name = "BatchNorm",
     .doc = "(x - mean) / sqrt(variance + epsilon) * scale + bias for each channel (axis 1), with given statistics.",
     .kind = OpKind::Composite,
     .in = {{"x", kinds::floats, 'T'},
            {"scale", kinds::floats},
            {"bias", kinds::floats},
            {"mean", kinds::floats},
            {"variance", kinds::floats}},
     .attrs = {kEpsilon},
     .infer = infer::batchNorm,
     .standard = {"BatchNormalization", onnx_kinds::floats, "batchNorm"}},
    {.name = "LayerNorm",
     .doc = "x with mean 0 and variance 1 over the axes from axis on, times scale, plus bias; mean and 1/deviation as "
            "further results. Statistics are computed in f32 or wider.",
     .kind = OpKind::Composite,
     .in = {{"x", kinds::floats, 'T'}, {"scale", kinds::floats, 'T'}, {"bias", kinds::floats, 'T', Arity::Optional}},
     .out = {{"y"}, {"mean"}, {"inv_deviation"}},
     .attrs = {{"axis", AttrKind::Int, -1}, kEpsilon},
     .infer = infer::layerNorm,
     .standard = {"LayerNormalization", onnx_kinds::floats, "layerNorm"}},
    {.name = "RMSNorm",
     .doc = "x divided by its root mean square over the axes from axis on, times scale.",
     .kind = OpKind::Composite,
     .in = {{"x", kinds::floats, 'T'}, {"scale", kinds::floats}},
     .attrs = {{"axis", AttrKind::Int, -1}, kEpsilon},
     .infer = infer::rmsNorm,
     .standard = {"RMSNormalization", onnx_kinds::floats, "rmsNorm"}},
    {.name = "InstanceNorm",
     .doc = "Each channel of each item with mean 0 and variance 1, times scale, plus bias (one of each a channel).",
     .kind = OpKind::Composite,
     .in = {{"x", kinds::floats, 'T'}, {"scale", kinds::floats, 'T'}, {"bias", kinds::floats, 'T'}},
     .attrs = {kEpsilon},
     .infer = infer::instanceNorm,
     .standard = {"InstanceNormalization", onnx_kinds::floats, "instanceNorm"}},
    {.name = "GroupNorm",
     .doc = "Groups of channels with mean 0 and variance 1, times scale, plus bias (one of each a channel).",
     .kind = OpKind::Composite,
     .in = {{"x", kinds::floats, 'T'}, {"scale", kinds::floats, 'T'}, {"bias", kinds::floats, 'T'}},
     .attrs = {{"groups", AttrKind::Int}, kEpsilon},
     .infer = infer::groupNorm,
     .standard = {"GroupNormalization", onnx_kinds::floats, "groupNorm"}},
    {.name = "LRN",
     .doc = "x / (bias + alpha / size * sum of squares over size neighbouring channels) ^ beta.",
     .kind = OpKind::Composite,
     .in = {{"x", kinds::floats, 'T'}},
     .attrs = {{"size", AttrKind::Int, 1},
               {"alpha", AttrKind::Float, 1e-4},
               {"beta", AttrKind::Float, 0.75},
               {"bias", AttrKind::Float, 1}},
     .infer = infer::lrn,
     .onnx = "LRN",
     .standard = {"LRN", onnx_kinds::floats, "lrn"}},
};

}  // namespace aglow::records
