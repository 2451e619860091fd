// Convolutions over one and two spatial axes; one axis is the second of two.
#include "backends/cpu/layout/convs.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>

#include "backends/cpu/kernels/gemm/matrix_desc.h"
#include "backends/cpu/kernels/gemm/pack.h"
#include "backends/cpu/layout/bytes.h"
#include "backends/cpu/layout/run_time_packing.h"
#include "backends/winograd.h"
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

  // As attributes of a target operator on blocks.
  template <class Attrs>
  Attrs attrs(int64_t lanes) const {
    Attrs a;
    a.strides = strides, a.pads = pads, a.dilations = dilations;
    a.group = group, a.outputs = outputs, a.lanes = lanes;
    return a;
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

namespace {

constexpr int64_t kImageChannels = 4;
constexpr int64_t kMostlyEmpty = 4;  // so many times fewer channels than lanes

// What NarrowConv has to take for bytes outside of the image, if it can.
std::optional<int64_t> outsideOf(const ShiftedBytes& x) {
  const std::optional<int64_t> shift = x.known();
  if (!shift) return std::nullopt;
  const int64_t outside = (x.bytes.kind() == ElemKind::Int8 ? kSignedShift : 0) - *shift;
  if (outside < 0 || outside > UINT8_MAX) return std::nullopt;
  return outside;
}

ConvForm byteForm(const ConvNode& node, const Conv2d& conv) {
  const std::optional<ShiftedBytes> x = shiftedBytes(node.x());
  if (!x || x->bytes.shape() != node.x().shape() || !outsideOf(*x) ||
      !fitsSignedBytes(asConstant(node.filter())->tensor()))
    return ConvForm::None;
  if (conv.group > 1 && conv.group == conv.channels && conv.group == conv.outputs) return ConvForm::DepthwiseBytes;
  if (conv.group > 1) return ConvForm::Bytes;
  return conv.channels <= kImageChannels ? ConvForm::FewBytes : ConvForm::Bytes;
}

// Whole pairs of channels: a lane that holds no channel may hold what times zero is not zero.
bool isOfHalves(const ConvNode& node, const Conv2d& conv, const ConvForms& forms) {
  const int64_t rows = node.x().dim(0) * conv.height * conv.width;
  const int64_t bytes = 2 * conv.channels * conv.kernelHeight * conv.kernelWidth;
  const bool matrix = forms.matrix && conv.group == 1 && cpu::areWorthRows(rows, bytes, conv.outputs);
  return (forms.halves || matrix) && isConstant(node.filter()) && node.filter().dim(1) % 2 == 0 &&
         isNarrowFloats(node.x()) && node.x().node->op() == Op::Cast && fitsHalves(asConstant(node.filter())->tensor());
}

// A filter that changes from run to run is packed in each, which takes as long as multiplying it by a few dozen rows.
bool isWorthPacking(const ConvNode& node, const Conv2d& conv) {
  constexpr int64_t kFewRows = 32;
  return node.x().dim(0) * conv.height * conv.width >= kFewRows;
}

// What a convolution owes its filter: images by images, where channels are the batch.
bool isOfMaps(const ConvNode& node, const Conv2d& conv) {
  return conv.group == 1 && !node.bias() && exchangesChannels(*node.x().node) && exchangesChannels(*node.filter().node);
}

ConvForm tapsForm(const Node& node, int64_t lanes) {
  const int64_t channels = node.input(0).dim(0), outputs = node.input(1).dim(0);
  if (kMostlyEmpty * outputs < lanes) return ConvForm::None;
  return channels < lanes && channels <= kImageChannels ? ConvForm::PlanarTaps : ConvForm::Taps;
}

// In each output channel, the sum of all weights.
std::vector<int64_t> weightSums(const Tensor& filter) {
  const int64_t outputs = filter.type().dim(0), each = outputs == 0 ? 0 : filter.type().elements() / outputs;
  const auto* weights = filter.ref().as<const int32_t>();
  std::vector<int64_t> sums(static_cast<size_t>(outputs));
  for (int64_t& sum : sums) {
    sum = std::accumulate(weights, weights + each, int64_t{0});
    weights += each;
  }
  return sums;
}

}  // namespace

bool exchangesChannels(const Node& node) {
  const bool moves = node.op() == Op::Transpose || node.op() == Op::Reshape;
  if (!moves || node.predicate() || node.type().rank() < 2) return false;
  Ints dims = node.input(0).shape().dims();
  if (dims.size() < 2) return false;
  std::swap(dims[0], dims[1]);
  if (dims != node.type().shape().dims()) return false;
  if (node.op() == Op::Reshape) return dims[0] == 1 || dims[1] == 1;
  Ints perm(node.attrs().ints("perm"));
  std::swap(perm[0], perm[1]);
  return std::is_sorted(perm.begin(), perm.end());
}

Value mapOf(Node& node) { return node.input(1).node->input(0); }

Value imageOf(Node& node, ConvForm form) {
  if (givesFilter(form)) return node.input(0).node->input(0);
  if (form == ConvForm::Halves) return node.input(0).node->input(0);
  const bool bytes = form == ConvForm::Bytes || form == ConvForm::FewBytes || form == ConvForm::DepthwiseBytes;
  return bytes ? shiftedBytes(node.input(0))->bytes : node.input(0);
}

namespace {

// Of halves, whose loads are of eight channels; an image of few is read as it is.
ConvForm lastForm(Node& node) {
  constexpr int64_t kTogether = 8;
  if (node.type().kind() != ElemKind::Float16 || node.type().rank() != 4 || node.type().elements() == 0 ||
      !isConstant(node.input(1)))
    return ConvForm::None;
  const Conv2d conv{ConvNode(node)};
  const int64_t places = node.type().dim(0) * conv.height * conv.width;
  if (conv.group != 1 || conv.outputs < kTogether || places < kTogether) return ConvForm::None;
  if (conv.channels <= kImageChannels)
    return conv.channels * conv.kernelHeight * conv.kernelWidth < kTogether ? ConvForm::None : ConvForm::PlanarLast;
  return conv.channels % kTogether == 0 ? ConvForm::Last : ConvForm::None;
}

}  // namespace

std::optional<int64_t> gainOf(const Node& conv, ConvForm form, const Blocks& blocks) {
  const Shape& filter = conv.input(1).shape();
  const int64_t each = filter.elements() / filter[0];
  // A convolution of planes whose vectors are half empty may stay as it is, if all around it is planar.
  if (form == ConvForm::Planar && 2 * conv.type().dim(1) <= blocks.lanes()) return conv.type().elements() * each;
  if (form != ConvForm::Last && form != ConvForm::PlanarLast) return std::nullopt;
  // Measured: elements that are loaded one by one instead of by eight, of windows some more than of single places.
  const int64_t loads = conv.type().elements() / filter[0] * each;
  return each > filter[1] ? loads + loads / 2 : loads / 2;
}

ConvForm convFormOf(Node& node, const Blocks& blocks, const ConvForms& forms) {
  if (node.op() != Op::Conv || node.predicate()) return ConvForm::None;
  if (blocks.isWhole()) return lastForm(node);
  const ElemKind kind = node.type().kind();
  if (kind != ElemKind::Float32 && kind != ElemKind::Int32) return ConvForm::None;
  const int rank = node.type().rank();
  if (rank > 4 || node.type().elements() == 0 || node.input(0).type().elements() == 0) return ConvForm::None;
  const Conv2d conv{ConvNode(node)};
  const int64_t lanes = blocks.lanes();
  const bool known = isConstant(node.input(1));
  if (!known && kind != ElemKind::Float32) return ConvForm::None;
  if (isOfMaps(ConvNode(node), conv)) return tapsForm(node, lanes);
  if (!known && !isWorthPacking(ConvNode(node), conv)) return ConvForm::None;
  // Vectors that are mostly empty on both sides win nothing.
  if (conv.group == 1 && conv.channels < lanes && kMostlyEmpty * conv.outputs < lanes) return ConvForm::None;
  if (kind == ElemKind::Int32)
    return multipliesBytes(node, {.lanes = static_cast<int>(lanes)}) ? byteForm(ConvNode(node), conv) : ConvForm::None;
  if (conv.group > 1) {
    // Weights of all members of a group stay in registers beside results.
    const int64_t members = conv.channels / conv.group;
    if (conv.channels == conv.outputs && members <= lanes && std::has_single_bit(static_cast<uint64_t>(members)))
      return ConvForm::Depthwise;
    const bool whole = conv.channels / conv.group % lanes == 0 && conv.outputs / conv.group % (2 * lanes) == 0;
    if (!whole) return ConvForm::None;
    return isOfHalves(ConvNode(node), conv, forms) ? ConvForm::Halves : ConvForm::Direct;
  }
  if (conv.channels < lanes && conv.channels <= kImageChannels) return ConvForm::Planar;
  if (isOfHalves(ConvNode(node), conv, forms)) return ConvForm::Halves;
  const bool square = conv.kernelHeight == 3 && conv.kernelWidth == 3 && conv.isUnit();
  if (forms.winograd && square && winogradTile(conv.channels, conv.outputs, conv.height, conv.width) > 0)
    return ConvForm::Winograd;
  return ConvForm::Direct;
}

namespace {

// Along the channels of a result.
Value alongChannels(BlockSource& source, const Node& node, const Tensor& known) {
  Ints along(static_cast<size_t>(node.type().rank()), 1);
  along[1] = known.type().elements();
  return source.b.constant(source.blocks.tensor(known.retyped(known.type().withShape(Shape(along)))));
}

// (x + shift) * w is x * w + shift * w, and outside of the image x is what makes this 0.
Value narrowConv(Node& node, ConvForm form, const Conv2d& conv, const Tensor& filter, BlockSource& source) {
  constexpr int64_t kFour = 4;
  Builder& b = source.b;
  const ShiftedBytes image = *shiftedBytes(node.input(0));
  const int64_t outside = *outsideOf(image), lanes = source.blocks.lanes();
  const Value bytes = form == ConvForm::FewBytes ? Blocks(kFour).fromPlanar(b, source.planar(image.bytes))
                                                 : source.blocked(image.bytes);
  const Value x = unsignedBytes(b, bytes);
  const Value y =
      form == ConvForm::DepthwiseBytes
          ? b.byteDepthwiseConv(
                x, b.constant(cpu::packByteDepthwise(filter, lanes)),
                {.strides = conv.strides, .pads = conv.pads, .dilations = conv.dilations, .outside = outside})
          : b.narrowConv(x, b.constant(cpu::packNarrowFilter(filter, 2 * lanes)),
                         {.strides = conv.strides,
                          .pads = conv.pads,
                          .dilations = conv.dilations,
                          .group = conv.group,
                          .outputs = conv.outputs,
                          .lanes = lanes,
                          .outside = outside});
  std::vector<int64_t> added = weightSums(filter);
  for (int64_t& sum : added) sum *= -outside;
  const ConvNode v(node);
  if (const Constant* bias = v.bias() ? asConstant(v.bias()) : nullptr) {
    const std::vector<int64_t> more = bias->tensor().toInts();
    std::transform(added.begin(), added.end(), more.begin(), added.begin(), std::plus<>());
  }
  for (int64_t& sum : added) sum = static_cast<int32_t>(sum);  // wraps, as sums of i32 do
  if (std::all_of(added.begin(), added.end(), [](int64_t sum) { return sum == 0; })) return y;
  return b.add(y, alongChannels(source, node, Tensor::fromInts(Type(ElemKind::Int32, Shape{conv.outputs}), added)));
}

}  // namespace

// Steps from place to place are the dilations of the convolution, and those from tap to tap its steps.
Value tapProducts(Node& node, ConvForm form, BlockSource& source) {
  const Conv2d conv{ConvNode(node)};
  Builder& b = source.b;
  const int64_t channels = node.type().dim(0), outputs = conv.outputs;
  const Value image = imageOf(node, form), map = mapOf(node);
  Value x = form == ConvForm::PlanarTaps ? source.planar(image) : source.blocked(image);
  if (x.rank() == 3) x = b.reshaped(x, {x.dim(0), x.dim(1), 1, x.dim(2)});
  const Value sums = b.tapProducts(x, source.blocked(map),
                                   {.kernel = {conv.height, conv.width},
                                    .strides = conv.dilations,
                                    .pads = conv.pads,
                                    .dilations = conv.strides,
                                    .channels = channels});
  Ints dims = node.type().shape().dims();
  std::swap(dims[0], dims[1]);
  return b.reshaped(unpackSums(b, sums, outputs), dims);
}

// [outputs, channels, taps] as [outputs, taps, channels].
static Tensor channelsLast(const Tensor& filter, const Conv2d& conv) {
  const int64_t taps = conv.kernelHeight * conv.kernelWidth;
  const auto bytes = static_cast<size_t>(elemBytes(filter.type().kind()));
  Tensor turned(filter.type().withShape(Shape{conv.outputs, conv.kernelHeight, conv.kernelWidth, conv.channels}));
  const std::byte* from = filter.data();
  for (int64_t o = 0; o < conv.outputs; ++o)
    for (int64_t c = 0; c < conv.channels; ++c)
      for (int64_t tap = 0; tap < taps; ++tap, from += bytes)
        std::memcpy(turned.mutableData() + static_cast<size_t>((o * taps + tap) * conv.channels + c) * bytes, from,
                    bytes);
  return turned;
}

Value blockedConv(Node& node, ConvForm form, BlockSource& source) {
  const ConvNode v(node);
  const Conv2d conv(v);
  Builder& b = source.b;
  if (form == ConvForm::Last || form == ConvForm::PlanarLast) {
    const Constant& filter = *asConstant(v.filter());
    return b.channelsLastConv(form == ConvForm::Last ? source.blocked(v.x()) : source.planar(v.x()),
                              b.constant(channelsLast(filter.tensor(), conv), filter.name()),
                              v.bias() ? source.planar(v.bias()) : Value{},
                              {.strides = conv.strides, .pads = conv.pads, .dilations = conv.dilations});
  }
  const int64_t lanes = source.blocks.lanes();
  const Ints dims{conv.outputs, conv.channels / conv.group, conv.kernelHeight, conv.kernelWidth};
  const Constant* known = asConstant(v.filter());
  const Tensor filter = known == nullptr ? Tensor() : known->tensor().retyped(known->type().withShape(Shape(dims)));
  const auto packed = [&](int64_t panel) {
    return known != nullptr ? b.constant(cpu::packFilter(filter, panel))
                            : packFilterAtRunTime(b, b.reshaped(source.planar(v.filter()), dims), panel);
  };
  Value y;
  switch (form) {
    case ConvForm::Depthwise:
      y = b.depthwiseConv(source.blocked(v.x()), packed(lanes),
                          {.strides = conv.strides, .pads = conv.pads, .dilations = conv.dilations});
      break;
    case ConvForm::Winograd: {
      const int tile = winogradTile(conv.channels, conv.outputs, conv.height, conv.width);
      const Value points = known != nullptr ? b.constant(winogradFilter(filter, tile, 2 * lanes))
                                            : transformAtRunTime(b, source.planar(v.filter()), tile, 2 * lanes);
      y = b.winogradConv(source.blocked(v.x()), points,
                         {.tile = tile, .pads = conv.pads, .outputs = conv.outputs, .lanes = lanes});
      break;
    }
    case ConvForm::Bytes:
    case ConvForm::FewBytes:
    case ConvForm::DepthwiseBytes:
      y = narrowConv(node, form, conv, filter, source);
      if (!v.bias() || isConstant(v.bias())) return y;
      break;
    case ConvForm::Halves:
      y = b.narrowConv(source.blocked(imageOf(node, form)), b.constant(cpu::packNarrowFilter(filter, 2 * lanes)),
                       conv.attrs<NarrowConvAttrs>(lanes));
      break;
    default: {
      Value x = form == ConvForm::Planar ? source.planar(v.x()) : source.blocked(v.x());
      if (form == ConvForm::Planar && x.rank() == 3) x = b.reshaped(x, {x.dim(0), x.dim(1), 1, x.dim(2)});
      y = b.blockedConv(x, packed(2 * lanes), conv.attrs<BlockedConvAttrs>(lanes));
    }
  }
  if (!v.bias()) return y;
  if (const Constant* bias = asConstant(v.bias())) return b.add(y, alongChannels(source, node, bias->tensor()));
  Ints along(static_cast<size_t>(node.type().rank()), 1);
  along[1] = conv.outputs;
  return b.add(y, source.blocks.fromPlanar(b, b.reshaped(source.planar(v.bias()), along)));
}

}  // namespace aglow
