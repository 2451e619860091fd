// Convolutions and pools in both orders of axes.
#include <fmt/format.h>

#include <algorithm>

#include "import/caffe2/op_tables.h"
#include "import/caffe2/window.h"

namespace aglow::caffe2 {

namespace {

Value convolved(OpImport& c) {
  const Value x = channelsFirst(c, c.in(0)), filter = channelsFirst(c, c.in(1));
  const Window window = readWindow(c, x, kernelOf(c, x, filter));
  return c.b.conv(
      x, filter, c.optional(2),
      {.strides = window.strides, .pads = window.pads, .dilations = window.dilations, .group = intArg(c, "group", 1)});
}

void conv(OpImport& c) { c.out(orderedAsSaid(c, convolved(c))); }
void convRelu(OpImport& c) { c.out(orderedAsSaid(c, c.b.relu(convolved(c)))); }

// The filter is [in, out, spatial...] or, with the channels last, [in, spatial..., out].
void convTranspose(OpImport& c) {
  const Value x = channelsFirst(c, c.in(0)), filter = channelsFirst(c, c.in(1));
  const Window window = readWindow(c, x, kernelOf(c, x, filter));
  c.out(orderedAsSaid(c, c.b.convTranspose(x, filter, c.optional(2),
                                           {.strides = window.strides,
                                            .pads = window.pads,
                                            .dilations = window.dilations,
                                            .group = intArg(c, "group", 1),
                                            .outputPadding = windowList(c, "adj", window.kernel.size(), 0, 0)})));
}

void maxPool(OpImport& c) { c.out(orderedAsSaid(c, pooled(c, channelsFirst(c, c.in(0)), false))); }
void averagePool(OpImport& c) { c.out(orderedAsSaid(c, pooled(c, channelsFirst(c, c.in(0)), true))); }

// The places of the winners within each image, counted over height and width.
void maxPoolWithIndex(OpImport& c) {
  const Value x = channelsFirst(c, c.in(0));
  const Window window = readWindow(c, x);
  aglow::Node* node = c.b.maxPoolWithIndices(x, {.kernel = window.kernel,
                                                 .strides = window.strides,
                                                 .pads = window.pads,
                                                 .dilations = window.dilations,
                                                 .sizes = window.sizes});
  const Value plane = c.b.scalar(ElemKind::Int64, static_cast<double>(product(x.shape(), 2, x.rank())));
  c.out(0, orderedAsSaid(c, node->result(0)));
  c.out(1, orderedAsSaid(c, c.b.casted(c.b.rem(node->result(1), plane), ElemKind::Int32)));
}

// The root of the sum of powers; padding counts as nothing.
void lpPool(OpImport& c) {
  Builder& b = c.b;
  const Value x = channelsFirst(c, c.in(0));
  const double p = realArg(c, "p", 2);
  const Value powers = b.pow(b.abs(x), b.scalarLike(x, p));
  Value sum;
  if (flag(c, "global_pooling")) {
    sum = b.reduced(powers, "sum", range(2, x.rank()));
  } else {
    const Window window = readWindow(c, x);
    if (!window.sizes.empty()) fail(Code::UnsupportedFeature, "LpPool with 'legacy_pad' 3 is not supported");
    double taps = 1;
    for (const int64_t extent : window.kernel) taps *= static_cast<double>(extent);
    const Value mean = b.avgPool(powers, {.kernel = window.kernel,
                                          .strides = window.strides,
                                          .pads = window.pads,
                                          .dilations = window.dilations,
                                          .countIncludePad = true});
    sum = b.mul(mean, b.scalarLike(mean, taps));
  }
  c.out(orderedAsSaid(c, b.pow(sum, b.scalarLike(sum, 1 / p))));
}

}  // namespace

std::span<const OpRow> windowRows() {
  static constexpr OpRow rows[] = {
      row("Conv", conv),
      row("Conv1D", conv),
      row("Conv2D", conv),
      row("Conv3D", conv),
      row("ConvRelu", convRelu),
      row("ConvTranspose", convTranspose),
      row("MaxPool", maxPool),
      row("MaxPool1D", maxPool),
      row("MaxPool2D", maxPool),
      row("MaxPool3D", maxPool),
      row("MaxPoolWithIndex", maxPoolWithIndex),
      row("AveragePool", averagePool),
      row("AveragePool1D", averagePool),
      row("AveragePool2D", averagePool),
      row("AveragePool3D", averagePool),
      row("LpPool", lpPool),
  };
  return rows;
}

}  // namespace aglow::caffe2
