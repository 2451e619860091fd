// Convolutions over one and two spatial axes; one axis is the second of two.
#include "backends/cpu/layout/convs.h"

#include <bit>

#include "backends/cpu/kernels/conv/winograd_filter.h"
#include "backends/cpu/kernels/gemm/pack.h"
#include "graph/op_views.h"

namespace aglow {

using Ints = std::vector<int64_t>;

namespace {

// Attributes and extents over two spatial axes.
struct Conv2d {
  Ints strides, pads, dilations;
  int64_t channels, outputs, group, kernelHeight, kernelWidth, height, width;

  explicit Conv2d(const ConvNode& v)
      : strides(twoAxes(v.strides(), 1)),
        pads(twoAxes({v.pads().begin(), v.pads().begin() + half(v)}, 0)),
        dilations(twoAxes(v.dilations(), 1)),
        channels(v.x().dim(1)),
        outputs(v.type().dim(1)),
        group(v.group()),
        kernelHeight(v.filter().rank() == 4 ? v.filter().dim(2) : 1),
        kernelWidth(v.filter().dim(v.filter().rank() - 1)),
        height(v.type().rank() == 4 ? v.type().dim(2) : 1),
        width(v.type().dim(v.type().rank() - 1)) {
    const Ints after = twoAxes({v.pads().begin() + half(v), v.pads().end()}, 0);
    pads.insert(pads.end(), after.begin(), after.end());
  }

  bool isUnit() const { return strides == Ints{1, 1} && dilations == Ints{1, 1}; }

private:
  static std::ptrdiff_t half(const ConvNode& v) { return static_cast<std::ptrdiff_t>(v.pads().size() / 2); }
  static Ints twoAxes(Ints list, int64_t missing) {
    while (list.size() < 2) list.insert(list.begin(), missing);
    return list;
  }
};

}  // namespace

ConvForm convFormOf(Node& node, const Blocks& blocks, bool winograd) {
  constexpr int64_t kImageChannels = 4;
  if (node.op() != Op::Conv || node.predicate() || node.type().kind() != ElemKind::Float32) return ConvForm::None;
  const int rank = node.type().rank();
  if (rank > 4 || node.type().elements() == 0 || node.input(0).type().elements() == 0 || !isConstant(node.input(1)))
    return ConvForm::None;
  const Conv2d conv{ConvNode(node)};
  const int64_t lanes = blocks.lanes();
  if (conv.group > 1) {
    // Weights of all members of a group stay in registers beside results.
    const int64_t members = conv.channels / conv.group;
    if (conv.channels == conv.outputs && members <= lanes && std::has_single_bit(static_cast<uint64_t>(members)))
      return ConvForm::Depthwise;
    const bool whole = conv.channels / conv.group % lanes == 0 && conv.outputs / conv.group % (2 * lanes) == 0;
    return whole ? ConvForm::Direct : ConvForm::None;
  }
  // Vectors that are mostly empty on both sides win nothing.
  if (conv.channels < lanes && 2 * conv.outputs < lanes) return ConvForm::None;
  if (conv.channels < lanes && conv.channels <= kImageChannels) return ConvForm::Planar;
  const bool square = conv.kernelHeight == 3 && conv.kernelWidth == 3 && conv.isUnit();
  if (winograd && square && cpu::winogradTile(conv.channels, conv.outputs, conv.height, conv.width) > 0)
    return ConvForm::Winograd;
  return ConvForm::Direct;
}

Value blockedConv(Node& node, ConvForm form, BlockSource& source) {
  const ConvNode v(node);
  const Conv2d conv(v);
  Builder& b = source.b;
  const int64_t lanes = source.blocks.lanes();
  const Tensor& known = asConstant(v.filter())->tensor();
  const Tensor filter = known.retyped(
      known.type().withShape(Shape{conv.outputs, conv.channels / conv.group, conv.kernelHeight, conv.kernelWidth}));
  Value y;
  switch (form) {
    case ConvForm::Depthwise:
      y = b.depthwiseConv(source.blocked(v.x()), b.constant(cpu::packFilter(filter, lanes)),
                          {.strides = conv.strides, .pads = conv.pads, .dilations = conv.dilations});
      break;
    case ConvForm::Winograd: {
      const int tile = cpu::winogradTile(conv.channels, conv.outputs, conv.height, conv.width);
      y = b.winogradConv(source.blocked(v.x()), b.constant(cpu::winogradFilter(filter, tile, 2 * lanes)),
                         {.tile = tile, .pads = conv.pads, .outputs = conv.outputs, .lanes = lanes});
      break;
    }
    default: {
      Value x = form == ConvForm::Planar ? source.planar(v.x()) : source.blocked(v.x());
      if (form == ConvForm::Planar && x.rank() == 3) x = b.reshaped(x, {x.dim(0), x.dim(1), 1, x.dim(2)});
      y = b.blockedConv(x, b.constant(cpu::packFilter(filter, 2 * lanes)),
                        {.strides = conv.strides,
                         .pads = conv.pads,
                         .dilations = conv.dilations,
                         .group = conv.group,
                         .outputs = conv.outputs,
                         .lanes = lanes});
    }
  }
  if (!v.bias()) return y;
  Ints along(static_cast<size_t>(node.type().rank()), 1);
  along[1] = conv.outputs;
  const Constant* bias = asConstant(v.bias());
  if (bias == nullptr) return b.add(y, source.blocks.fromPlanar(b, b.reshaped(source.planar(v.bias()), along)));
  return b.add(y, b.constant(source.blocks.tensor(bias->tensor().retyped(v.bias().type().withShape(Shape(along))))));
}

}  // namespace aglow
