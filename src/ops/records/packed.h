// Target operators: products and convolutions on blocked channels with packed weights, for backends with vectors of
// `lanes` f32 elements. The layout pass makes them, with weights that are known when compiling; no model has them.
//
// Blocked channels: [batch, channel, height, width] becomes [batch, channel / lanes, height, width, lanes], the last
// block filled up with lanes of any value, which are never read. Packed weights hold the result's channels in panels of
// 2 * lanes, zero after the last channel. Narrow elements of weights lie in groups of neighbouring channels of the
// input, which are multiplied together: four bytes, or two bf16.
#pragma once

#include "ops/kind_sets.h"
#include "ops/op_def.h"
#include "ops/records/linear.h"
#include "ops/type_rules.h"

namespace aglow::records {

inline constexpr KindSet kPackedKinds = kindSet(ElemKind::Float32);
inline constexpr KindSet kWholeKinds = kindSet(ElemKind::Float32, ElemKind::Float16);  // of channels side by side
inline constexpr KindSet kBytes = kindSet(ElemKind::UInt8), kByteWeights = kindSet(ElemKind::Int8),
                         kAnyBytes = kBytes | kByteWeights;
inline constexpr KindSet kNarrow = kindSet(ElemKind::UInt8, ElemKind::BFloat16),
                         kNarrowWeights = kindSet(ElemKind::Int8, ElemKind::BFloat16);
inline constexpr AttrDef kOutputs{.name = "outputs", .kind = AttrKind::Int, .doc = "channels of the result"};
inline constexpr AttrDef kOutside{
    .name = "outside", .kind = AttrKind::Int, .doc = "what bytes are outside of the image, 0 to 255"};
inline constexpr AttrDef kOffsetOfA{.name = "a_offset", .kind = AttrKind::Int, .doc = "the byte of a that is zero"},
    kOffsetOfB{.name = "b_offset", .kind = AttrKind::Int, .doc = "the byte of b that is zero"},
    kOffsetOfX{.name = "x_offset", .kind = AttrKind::Int, .doc = "the byte of x that is zero"},
    kOffsetOfFilter{.name = "filter_offset", .kind = AttrKind::Int, .doc = "the byte of the filter that is zero"};
inline constexpr AttrDef kLanes{.name = "lanes", .kind = AttrKind::Int, .doc = "channels of a block"};

inline constexpr OpDef kPacked[] = {
    {.name = "PackedMatMul",
     .doc = "Product of [..., m, k] by one matrix of n columns in panels, [n / panel, k, panel].",
     .kind = OpKind::Target,
     .in = {{"a", kPackedKinds}, {"b", kPackedKinds}},
     .attrs = {{.name = "n", .kind = AttrKind::Int, .doc = "columns of b"}},
     .infer = infer::packedMatMul,
     .cost = cost::matMul},
    {.name = "BlockedConv",
     .doc = "Convolution over two spatial axes, of blocked channels or of a planar image [batch, channel, height, "
            "width], with a blocked result; filter [outputs / panel, kernel height, kernel width, in channel / group, "
            "panel]. The channels of a group fill whole blocks, and its results whole panels.",
     .kind = OpKind::Target,
     .in = {{"x", kPackedKinds}, {"filter", kPackedKinds}},
     .attrs = {kStrides, kPads, kDilations, kGroup, kOutputs, kLanes},
     .infer = infer::blockedConv,
     .cost = cost::blockedConv},
    {.name = "ChannelsLastConv",
     .doc = "Convolution over two spatial axes of channels that lie side by side, [batch, 1, height, width, channel], "
            "or of a planar image [batch, channel, height, width], with a result of the first form; filter [outputs, "
            "kernel height, kernel width, in channel].",
     .kind = OpKind::Target,
     .in = {{"x", kWholeKinds, 'T'}, {"filter", kWholeKinds, 'T'}, {"bias", kWholeKinds, 'T', Arity::Optional}},
     .attrs = {kStrides, kPads, kDilations},
     .infer = infer::channelsLastConv,
     .cost = cost::conv},
    {.name = "WinogradConv",
     .doc = "Convolution of blocked channels, or of a planar image [batch, channel, height, width] with such a result, "
            "with a 3x3 window in steps of 1, as products of transformed tiles of tile x tile results; filter [(tile + "
            "2)^2, outputs / panel, in channel, panel], transformed. Of a planar image all outputs are one panel.",
     .kind = OpKind::Target,
     .in = {{"x", kPackedKinds}, {"filter", kPackedKinds}},
     .attrs = {{.name = "tile", .kind = AttrKind::Int, .number = 4, .doc = "2 or 4"}, kPads, kOutputs, kLanes},
     .infer = infer::winogradConv,
     .cost = cost::winogradConv},
    {.name = "DepthwiseConv",
     .doc = "Convolution of blocked channels in groups of a few, or one each, with as many results; filter [channel / "
            "lanes, kernel height, kernel width, in channel / group, lanes]. Blocks hold whole groups.",
     .kind = OpKind::Target,
     .in = {{"x", kPackedKinds}, {"filter", kPackedKinds}},
     .attrs = {kStrides, kPads, kDilations},
     .infer = infer::depthwiseConv,
     .cost = cost::depthwiseConv},
    {.name = "TransposedMatMul",
     .doc = "Product of the transposed left matrices: [..., k, m] by [..., k, n] gives [..., m, n].",
     .kind = OpKind::Target,
     .in = {{"a", kPackedKinds}, {"b", kPackedKinds}},
     .infer = infer::transposedMatMul,
     .cost = cost::transposedMatMul},
    {.name = "TapProducts",
     .doc = "For each tap of a window over x, each of its channels and each channel of g, the sum of x times g over "
            "batch and places: what a convolution of x with the result g owes each weight. x is blocked or planar, g "
            "is blocked; the result lies as the filter of BlockedConv, [outputs / panel, kernel height, kernel width, "
            "channels, panel], and is zero after the last block.",
     .kind = OpKind::Target,
     .in = {{"x", kPackedKinds}, {"g", kPackedKinds}},
     .attrs = {kKernel, kStrides, kPads, kDilations, {.name = "channels", .kind = AttrKind::Int, .doc = "of x"}},
     .infer = infer::tapProducts,
     .cost = cost::tapProducts},
    {.name = "NarrowMatMul",
     .doc = "Product of narrow elements [..., m, k] by one matrix of n columns in panels, [n / panel, k / group, "
            "panel, group]: bytes by signed bytes with sums in i32, or bf16 with sums in f32.",
     .kind = OpKind::Target,
     .in = {{"a", kNarrow}, {"b", kNarrowWeights}},
     .attrs = {{.name = "n", .kind = AttrKind::Int, .doc = "columns of b"}},
     .infer = infer::narrowMatMul,
     .cost = cost::matMul},
    {.name = "ByteMatMul",
     .doc = "Product of bytes less their offsets, [..., m, k] by [..., k, n] or, transposed, [..., n, k], with sums in "
            "i32. Leading axes broadcast.",
     .kind = OpKind::Target,
     .in = {{"a", kAnyBytes}, {"b", kAnyBytes}},
     .attrs = {kOffsetOfA,
               kOffsetOfB,
               {.name = "transposed", .kind = AttrKind::Bool, .doc = "b has its columns side by side"}},
     .infer = infer::byteMatMul,
     .cost = cost::matMul},
    {.name = "ByteConv",
     .doc =
         "Convolution of bytes less their offsets, planar, [batch, channel, spatial...], with sums in i32. Outside of "
         "the image stands the offset.",
     .kind = OpKind::Target,
     .in = {{"x", kAnyBytes}, {"filter", kAnyBytes}, {"bias", kindSet(ElemKind::Int32), 0, Arity::Optional}},
     .attrs = {kStrides, kPads, kDilations, kGroup, kOffsetOfX, kOffsetOfFilter},
     .infer = infer::byteConv,
     .cost = cost::conv},
    {.name = "BlockMatMul",
     .doc = "Product of [..., m, k] by one matrix of n columns, (levels - offsets) * scales. Words of four bytes hold "
            "the levels of 32 / bits neighbouring rows, the first in the lowest bits, [n / panel, k * bits / 32, "
            "panel, 4]; blocks of rows have a scale and an offset for each column, [n / panel, k / block, panel], or "
            "one offset for all.",
     .kind = OpKind::Target,
     .in = {{"a", kPackedKinds}, {"levels", kBytes}, {"scales", kPackedKinds}, {"offsets", kPackedKinds}},
     .attrs = {{.name = "n", .kind = AttrKind::Int, .doc = "columns of the matrix"},
               {.name = "bits", .kind = AttrKind::Int, .number = 4, .doc = "of a level: 4 or 8"},
               {.name = "block", .kind = AttrKind::Int, .doc = "rows of a block, whole words of them"}},
     .infer = infer::blockMatMul,
     .cost = cost::matMul},
    {.name = "NarrowConv",
     .doc = "Convolution of blocked channels of narrow elements, in blocks of `lanes` or of as many as are multiplied "
            "together, with sums in i32 or f32; filter [outputs / panel, kernel height, kernel width, in channel / "
            "group / together, panel, together]. The channels of a group fill whole blocks, and its results whole "
            "panels.",
     .kind = OpKind::Target,
     .in = {{"x", kNarrow}, {"filter", kNarrowWeights}},
     .attrs = {kStrides, kPads, kDilations, kGroup, kOutputs, kLanes, kOutside},
     .infer = infer::narrowConv,
     .cost = cost::narrowConv},
    {.name = "ByteDepthwiseConv",
     .doc = "Convolution of blocked channels of bytes, each by itself, with sums in i32; filter [channel / lanes, "
            "kernel height, kernel width, lanes].",
     .kind = OpKind::Target,
     .in = {{"x", kBytes}, {"filter", kByteWeights}},
     .attrs = {kStrides, kPads, kDilations, kOutside},
     .infer = infer::byteDepthwiseConv,
     .cost = cost::byteDepthwiseConv},
};

}  // namespace aglow::records
