// Between real and quantized values. The typed operators carry scales and offsets in the type; the linear ones, as
// model files have them, take them as operands.
#pragma once

#include "ops/kind_sets.h"
#include "ops/onnx_kinds.h"
#include "ops/op_def.h"
#include "ops/type_rules.h"

namespace aglow::records {

inline constexpr OpDef kQuant[] = {
    {.name = "Quantize",
     .doc = "x / scale (in f32, or f64 for f64), rounded to even, plus offset, saturated; NaN becomes the offset. "
            "Scales and "
            "offsets are one each, or one for each index of axis.",
     .in = {{"x", kinds::floats}},
     .attrs = {{.name = "to", .kind = AttrKind::Elem, .elem = ElemKind::QInt8},
               {"scales", AttrKind::Floats},
               {"offsets", AttrKind::Ints},
               {"axis", AttrKind::Int, -1}},
     .infer = infer::quantize,
     .cost = cost::twice,
     .pointwise = true},
    {.name = "Dequantize",
     .doc = "(x - offset) * scale.",
     .in = {{"x", kinds::quantized}},
     .attrs = {{"to", AttrKind::Elem}},
     .infer = infer::dequantize,
     .cost = cost::twice,
     .pointwise = true},
    {.name = "Rescale",
     .doc = "The same real values under other quantization parameters.",
     .kind = OpKind::Composite,
     .in = {{"x", kinds::quantized}},
     .attrs = {{.name = "to", .kind = AttrKind::Elem, .elem = ElemKind::QInt8},
               {"scales", AttrKind::Floats},
               {"offsets", AttrKind::Ints},
               {"axis", AttrKind::Int, -1}},
     .infer = infer::rescale},
    {.name = "Lookup",
     .doc = "The entry of `table` for each byte, which has 256 of them: of 0 to 255, or of -128 to 127.",
     .in = {{"x", kindSet(ElemKind::UInt8, ElemKind::Int8)}},
     .attrs = {{"table", AttrKind::Ints}, {.name = "to", .kind = AttrKind::Elem, .elem = ElemKind::UInt8}},
     .infer = infer::lookup,
     .cost = cost::once,
     .pointwise = true},
    {.name = "Observe",
     .doc = "What a run tells of a value, added to what is known. Counts of elements in bins, 2^step_bits for each "
            "octave of magnitudes from 2^-40 to 2^24, first those below zero, then zero and those above; the last "
            "counts what is not finite. For each channel the smallest and the largest finite element, and sums over "
            "runs of the mean and of the mean of squares, in multiples of 2^-30; what is not finite is zero there.",
     .in = {{"counts", kindSet(ElemKind::Int64)},
            {"channels", kindSet(ElemKind::Float64)},
            {"x", kindSet(ElemKind::Float32)}},
     .out = {{"new_counts"}, {"new_channels"}},
     .attrs = {{.name = "axis", .kind = AttrKind::Int, .number = -1, .doc = "of the channels; -1: all is one"},
               {.name = "blocked",
                .kind = AttrKind::Bool,
                .doc = "x is [batch, channel / lanes, spatial..., lanes]; lanes after the last channel do not count"},
               {.name = "step_bits", .kind = AttrKind::Int, .number = 5}},
     .infer = infer::observe,
     .cost = cost::observe,
     .inPlace = true},
    {.name = "QuantizeLinear",
     .doc =
         "saturate(round(x / scale) + offset): one scale, one for each index of axis, or one for each block along it.",
     .kind = OpKind::Composite,
     .in = {{"x", kinds::floats | kinds::ints},
            {"scale", kinds::floats | kinds::ints},
            {"offset", kinds::plain, 0, Arity::Optional}},
     .attrs = {{"axis", AttrKind::Int, 1},
               {"block_size", AttrKind::Int, 0},
               {.name = "to", .kind = AttrKind::Elem, .elem = ElemKind::UInt8},
               {"saturate", AttrKind::Bool, 1}},
     .infer = infer::quantizeLinear,
     .standard = {"QuantizeLinear", onnx_kinds::floats & ~kindSet(ElemKind::Float64), "quantizeLinear"}},
    {.name = "DequantizeLinear",
     .doc = "(x - offset) * scale, of the scale's kind or of kind `to`.",
     .kind = OpKind::Composite,
     .in = {{"x", kinds::plain}, {"scale", kinds::floats}, {"offset", kinds::plain, 0, Arity::Optional}},
     .attrs = {{"axis", AttrKind::Int, 1}, {"block_size", AttrKind::Int, 0}, {"to", AttrKind::Elem}},
     .infer = infer::dequantizeLinear,
     .standard = {"DequantizeLinear", onnx_kinds::dequantized, "dequantizeLinear"}},
};

}  // namespace aglow::records
