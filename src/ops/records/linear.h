// Matrix products, convolutions and pooling. Spatial operators have the layout [batch, channel, spatial...], filters
// [out channel, in channel / group, kernel...]; pads list all beginnings, then all ends.
#pragma once

#include "ops/kind_sets.h"
#include "ops/onnx_kinds.h"
#include "ops/op_def.h"
#include "ops/type_rules.h"

namespace aglow::records {

inline constexpr AttrDef kKernel{"kernel", AttrKind::Ints};
inline constexpr AttrDef kStrides{.name = "strides", .kind = AttrKind::Ints, .doc = "all 1 if empty"};
inline constexpr AttrDef kPads{.name = "pads", .kind = AttrKind::Ints, .doc = "all 0 if empty"};
inline constexpr AttrDef kDilations{.name = "dilations", .kind = AttrKind::Ints, .doc = "all 1 if empty"};
inline constexpr AttrDef kGroup{"group", AttrKind::Int, 1};
inline constexpr AttrDef kWhole{
    .name = "whole",
    .kind = AttrKind::Int,
    .doc = "of a part: how many results there are in all along the axis that was cut, by which its sums are ordered",
    .hint = true};

inline constexpr OpDef kLinear[] = {
    {.name = "MatMul",
     .doc = "Product of matrices, [..., m, k] by [..., k, n]; the leading axes broadcast.",
     .in = {{"a", kinds::numbers, 'T'}, {"b", kinds::numbers, 'T'}},
     .attrs = {kWhole},
     .infer = infer::matMul,
     .cost = cost::matMul,
     .standard = {"MatMul", onnx_kinds::floats | onnx_kinds::words},
     .gradient = GradientBy::Rule},
    {.name = "Conv",
     .doc = "Convolution over any number of spatial axes.",
     .in = {{"x", kinds::numbers, 'T'},
            {"filter", kinds::numbers, 'T'},
            {"bias", kinds::numbers, 'T', Arity::Optional}},
     .attrs = {kStrides, kPads, kDilations, kGroup, kWhole},
     .infer = infer::conv,
     .cost = cost::conv,
     .standard = {"Conv", onnx_kinds::floats, "conv"},
     .gradient = GradientBy::Rule},
    {.name = "ConvTranspose",
     .doc = "The transposed map of a convolution; filter [in channel, out channel / group, kernel...]. output_padding "
            "adds to the ends.",
     .kind = OpKind::Composite,
     .in = {{"x", kinds::numbers, 'T'},
            {"filter", kinds::numbers, 'T'},
            {"bias", kinds::numbers, 'T', Arity::Optional}},
     .attrs = {kStrides,
               kPads,
               kDilations,
               kGroup,
               {.name = "output_padding", .kind = AttrKind::Ints, .doc = "all 0 if empty"}},
     .infer = infer::convTranspose,
     .standard = {"ConvTranspose", onnx_kinds::floats, "conv"},
     .gradient = GradientBy::Rule},
    {.name = "Col2Im",
     .doc =
         "Windows put back together to the image that they were cut from: x is [batch, channel * kernel..., window], "
         "and what falls on the same place adds up, in the order of the kernel's taps.",
     .kind = OpKind::Composite,
     .in = {{"x", kinds::numbers, 'T'}},
     .attrs = {{.name = "sizes", .kind = AttrKind::Ints, .doc = "spatial extents of the image"},
               kKernel,
               kStrides,
               kPads,
               kDilations},
     .infer = infer::col2Im,
     .standard = {"Col2Im", onnx_kinds::numbers, "col2Im"},
     .gradient = GradientBy::Lowering},
    {.name = "MaxPool",
     .doc = "The largest element of each window; padding never wins. Windows may reach past the padded end, as the "
            "result's extent in `sizes` says. NaN wins; a window without elements has the kind's lowest value.",
     .in = {{"x", kinds::numbers, 'T'}},
     .attrs = {kKernel,
               kStrides,
               kPads,
               kDilations,
               {.name = "sizes", .kind = AttrKind::Ints, .doc = "spatial extents of the result; computed if empty"}},
     .infer = infer::maxPool,
     .cost = cost::pool,
     .standard = {"MaxPool", onnx_kinds::floats | onnx_kinds::bytes, "pool"},
     .gradient = GradientBy::Rule},
    {.name = "MaxPoolWithIndices",
     .doc = "MaxPool, with the flat index (i64) into x of each winner: the first of equals, -1 for a window without "
            "elements.",
     .in = {{"x", kinds::numbers, 'T'}},
     .out = {{"y"}, {"indices"}},
     .attrs = {kKernel,
               kStrides,
               kPads,
               kDilations,
               {.name = "sizes", .kind = AttrKind::Ints, .doc = "spatial extents of the result; computed if empty"}},
     .infer = infer::maxPoolWithIndices,
     .cost = cost::pool,
     .standard = {"MaxPool", onnx_kinds::floats | onnx_kinds::bytes, "pool"},
     .gradient = GradientBy::Rule},
    {.name = "AvgPool",
     .doc =
         "The mean of each window, over the elements inside x or, with count_include_pad, inside the padded x; 0 for a "
         "window without elements.",
     .in = {{"x", kinds::floats, 'T'}},
     .attrs = {kKernel,
               kStrides,
               kPads,
               kDilations,
               {.name = "sizes", .kind = AttrKind::Ints, .doc = "spatial extents of the result; computed if empty"},
               {"count_include_pad", AttrKind::Bool, 0}},
     .infer = infer::avgPool,
     .cost = cost::pool,
     .standard = {"AveragePool", onnx_kinds::floats, "pool"},
     .gradient = GradientBy::Rule},
};

}  // namespace aglow::records
