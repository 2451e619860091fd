// The type rules that records name. Each checks a use and gives the types of its results; errors are BadNode, without a
// place (the caller knows it).
#pragma once

#include "ops/op_def.h"

namespace aglow::infer {

// Elementwise: shapes broadcast; the element kind is that of the operands marked 'T'.
TypeRule broadcast;
// As broadcast, but of kind bool.
TypeRule broadcastToBool;

TypeRule expand, cast, bitcast, splat, reshape, transpose, slice, concat, pad;
TypeRule reduce, argReduce, scan, topK;
TypeRule matMul, conv, convTranspose, col2Im, maxPool, maxPoolWithIndices, avgPool;
TypeRule gather, gatherElements, gatherNd, scatter, scatterElements, scatterNd;
TypeRule softmax, batchNorm, layerNorm, rmsNorm, instanceNorm, groupNorm, lrn;
TypeRule attention, byteAttention, rnn, gru, lstm, resize;
TypeRule gradient, regression, optimizer;
TypeRule packedMatMul, blockedConv, channelsLastConv, winogradConv, depthwiseConv, narrowMatMul, byteMatMul,
    blockMatMul, narrowConv, byteConv, byteDepthwiseConv, transposedMatMul, tapProducts;
TypeRule quantize, dequantize, rescale, lookup, observe, quantizeLinear, dequantizeLinear;

}  // namespace aglow::infer
