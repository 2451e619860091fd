// GridSample, AffineGrid and DeformConv: images read at computed places.
#include <fmt/format.h>

#include <cmath>

#include "import/onnx/op_sample.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"
#include "import/onnx/op_window.h"

namespace aglow::onnx {

namespace {

Value number(Builder& b, Value like, double value) { return b.scalarLike(like, value); }

// How GridSample treats one axis.
struct GridAxis {
  int64_t extent;
  bool alignCorners;
  std::string padding;

  double low() const { return alignCorners ? 0 : -0.5; }
  double high() const { return static_cast<double>(extent) - (alignCorners ? 1 : 0.5); }
};

// Back and forth between the borders until the place lies inside.
Value reflected(Builder& b, Value place, const GridAxis& axis) {
  const double range = axis.high() - axis.low();
  if (range == 0) return b.mul(place, number(b, place, 0));
  const Value low = number(b, place, axis.low()), width = number(b, place, range);
  const Value phase = b.rem(b.abs(b.sub(place, low)), number(b, place, 2 * range));
  const Value inside = b.add(b.sub(width, b.abs(b.sub(phase, width))), low);
  const Value outside = b.logicalOr(b.less(place, low), b.less(number(b, place, axis.high()), place));
  return b.where(outside, inside, place);
}

// What the padding makes of a place beyond the borders.
Value padded(Builder& b, Value place, const GridAxis& axis) {
  if (axis.padding == "zeros") return place;
  const Value inside = axis.padding == "reflection" ? reflected(b, place, axis) : place;
  return b.clip(inside, number(b, place, 0), number(b, place, static_cast<double>(axis.extent - 1)));
}

// From [-1, 1] to places along the axis.
Value placeOf(Builder& b, Value x, const GridAxis& axis) {
  const auto extent = static_cast<double>(axis.extent);
  const Value shifted = b.add(x, number(b, x, 1));
  if (axis.alignCorners) return b.mul(b.div(shifted, number(b, x, 2)), number(b, x, extent - 1));
  return b.div(b.sub(b.mul(shifted, number(b, x, extent)), number(b, x, 1)), number(b, x, 2));
}

// Keys' cubic convolution with a = -0.75, at the distances 1 + share, share, 1 - share and 2 - share.
std::vector<Value> cubicWeights(Builder& b, Value share) {
  const auto n = [&](double value) { return number(b, share, value); };
  const double a = -0.75;
  const auto near = [&](Value d) { return b.add(b.mul(b.mul(b.sub(b.mul(d, n(a + 2)), n(a + 3)), d), d), n(1)); };
  const auto far = [&](Value d) {
    return b.sub(b.mul(b.add(b.mul(b.sub(b.mul(d, n(a)), n(5 * a)), d), n(8 * a)), d), n(4 * a));
  };
  return {far(b.add(share, n(1))), near(share), near(b.sub(n(1), share)), far(b.sub(n(2), share))};
}

// As torch has it: the nearest element, and linear weights, are those of the place that the padding gives; of the four
// neighbours that cubic weights belong to, the padding moves each by itself.
std::vector<Tap> gridTaps(Builder& b, Value place, const GridAxis& axis, const std::string& mode, ElemKind weightKind) {
  const bool held = axis.padding != "zeros";
  if (mode != "cubic") place = padded(b, place, axis);
  if (mode == "nearest")
    return neighbourTaps(b, b.round(place), 0, {held ? Value{} : b.scalar(weightKind, 1)}, axis.extent, held);
  const Value floor = b.floor(place), share = b.sub(place, floor);
  std::vector<Value> weights =
      mode == "linear" ? std::vector{b.sub(number(b, share, 1), share), share} : cubicWeights(b, share);
  for (Value& w : weights) w = b.casted(w, weightKind);
  if (mode == "linear") return neighbourTaps(b, floor, 0, weights, axis.extent, held);
  std::vector<Tap> taps;
  for (size_t t = 0; t < weights.size(); ++t) {
    const Value neighbour = b.add(floor, number(b, floor, static_cast<double>(t) - 1));
    taps.push_back(neighbourTaps(b, padded(b, neighbour, axis), 0, {weights[t]}, axis.extent, held).front());
  }
  return taps;
}

// The first row of each item of the batch, for points [batch, n].
Value batchBase(Builder& b, int64_t batch, int64_t places) {
  std::vector<int64_t> first;
  for (int64_t i = 0; i < batch; ++i) first.push_back(i * places);
  return b.constant(Tensor::of(Type(ElemKind::Int64, Shape{batch, 1}), first));
}

void gridSample(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0), grid = c.in(1);
  const int spatial = x.rank() - 2;
  if (spatial < 1 || grid.rank() != x.rank() || grid.dim(grid.rank() - 1) != spatial || grid.dim(0) != x.dim(0))
    fail(Code::BadNode, fmt::format("expected X [n, c, d1 ... dk] and a grid [n, e1 ... ek, k], got {} and {}",
                                    x.type().text(), grid.type().text()));
  std::string mode = c.word("mode", c.version < 20 ? "bilinear" : "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  const std::string padding = c.word("padding_mode", "zeros");
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    fail(Code::BadNode, fmt::format("expected 'mode' nearest, linear or cubic, got '{}'", mode));
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    fail(Code::BadNode, fmt::format("expected 'padding_mode' zeros, border or reflection, got '{}'", padding));
  if (spatial > 3) fail(Code::UnsupportedFeature, fmt::format("sampling over {} axes is not supported", spatial));

  std::vector<int64_t> dims{x.dim(0), x.dim(1)};
  dims.insert(dims.end(), grid.shape().dims().begin() + 1, grid.shape().dims().end() - 1);
  const int64_t points = product(grid.shape(), 1, grid.rank() - 1);
  if (x.dim(0) * x.dim(1) * points == 0) {
    c.out(b.splat({.elem = x.kind(), .shape = dims}));
    return;
  }
  if (x.type().elements() == 0)
    fail(Code::BadNode, fmt::format("expected elements to sample, got {}", x.type().text()));
  // The nearest element is copied, as a number where what lies outside is 0; means are computed as floats.
  const ElemKind kind = mode != "nearest"            ? isFloat(x.kind()) ? wideKind(x.kind()) : ElemKind::Float32
                        : x.kind() == ElemKind::Bool ? ElemKind::UInt8
                                                     : x.kind();
  const Value flat = b.reshaped(b.casted(grid, wideKind(grid.kind())), {x.dim(0), points, spatial});
  std::vector<std::vector<Tap>> axes;
  std::vector<int64_t> extents;
  for (int i = 0; i < spatial; ++i) {
    // The grid names the last axis first.
    const Value along = b.reshaped(sliced(b, flat, 2, spatial - 1 - i, 1), {x.dim(0), points});
    const GridAxis axis{x.dim(i + 2), c.flag("align_corners"), padding};
    axes.push_back(gridTaps(b, placeOf(b, along, axis), axis, mode, kind));
    extents.push_back(axis.extent);
  }
  const Value rows = rowsOf(b, b.casted(x, kind));
  const Value y = sampledRows(b, rows, batchBase(b, x.dim(0), product(x.shape(), 2, x.rank())), axes, extents);
  c.out(b.casted(b.reshaped(b.transposed(y, {0, 2, 1}), dims), x.kind()));
}

// Evenly spaced from -1 to 1: the corners themselves, or the middles of as many cells.
std::vector<double> spaced(int64_t count, bool corners) {
  constexpr int64_t kMost = int64_t{1} << 27;
  if (count > kMost) fail(Code::TooLarge, fmt::format("a grid of {} points exceeds the limit of {}", count, kMost));
  std::vector<double> values;
  const auto n = static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<double>(i);
    values.push_back(!corners ? (2 * at + 1) / n - 1 : count == 1 ? 0 : 2 * at / (n - 1) - 1);
  }
  return values;
}

void affineGrid(OpImport& c) {
  Builder& b = c.b;
  const Value theta = c.in(0);
  const std::vector<int64_t> size = c.constantInts(1);
  const auto spatial = static_cast<int64_t>(size.size()) - 2;
  if (spatial != 2 && spatial != 3)
    fail(Code::BadNode, fmt::format("expected a size of 4 or 5 entries, got {}", listText(size)));
  if (theta.shape().dims() != std::vector<int64_t>{size[0], spatial, spatial + 1})
    fail(Code::BadNode,
         fmt::format("expected theta [{},{},{}], got {}", size[0], spatial, spatial + 1, theta.type().text()));
  const Shape extents = orFail(Shape::create({size.begin() + 2, size.end()}));
  // Homogeneous points as columns, the last axis first.
  const ElemKind kind = wideKind(theta.kind());
  std::vector<Value> points;
  for (int64_t axis = spatial - 1; axis >= 0; --axis) {
    const std::vector<double> values = spaced(extents[static_cast<int>(axis)], c.flag("align_corners"));
    const Value line = b.constant(Tensor::of(Type(kind, Shape{extents[static_cast<int>(axis)]}), values));
    const Value all = b.expand(alongAxis(b, line, axis, spatial), {.shape = extents.dims()});
    points.push_back(b.reshaped(all, {1, extents.elements()}));
  }
  points.push_back(b.splat({.value = 1, .elem = kind, .shape = {1, extents.elements()}}));
  const Value columns = b.concat(points, {.axis = 0});
  const Value grid = b.transposed(b.matMul(b.casted(theta, kind), columns), {0, 2, 1});
  std::vector<int64_t> dims{size[0]};
  dims.insert(dims.end(), extents.dims().begin(), extents.dims().end());
  dims.push_back(spatial);
  c.out(b.casted(b.reshaped(grid, dims), theta.kind()));
}

// Where the taps of every window lie along one axis before they are moved: [taps, windows].
Value windowPlaces(Builder& b, const WindowAttrs& window, const Shape& result, size_t axis, ElemKind kind) {
  const Shape taps(window.kernel);
  const std::vector<int64_t> tapStrides = taps.strides(), windowStrides = result.strides();
  std::vector<int64_t> places;
  for (int64_t tap = 0; tap < taps.elements(); ++tap)
    for (int64_t w = 0; w < result.elements(); ++w)
      places.push_back(w / windowStrides[axis] % result[static_cast<int>(axis)] * window.strides[axis] -
                       window.pads[axis] + tap / tapStrides[axis] % window.kernel[axis] * window.dilations[axis]);
  return b.constant(Tensor::of(Type(kind, Shape{taps.elements(), result.elements()}), places));
}

void deformConv(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0), filter = c.in(1), offset = c.in(2);
  if (x.rank() < 3 || filter.rank() != x.rank() || offset.rank() != x.rank())
    fail(Code::BadNode, fmt::format("expected X, W and offset with as many axes, at least 3, got {}, {} and {}",
                                    x.type().text(), filter.type().text(), offset.type().text()));
  const WindowAttrs window = readWindow(c, x, kernelOf(c, x, filter));
  const int64_t batch = x.dim(0), channels = x.dim(1), outputs = filter.dim(0);
  const int64_t group = c.integer("group", 1), offsetGroup = c.integer("offset_group", 1);
  const auto spatial = static_cast<int64_t>(window.axes());
  if (group < 1 || offsetGroup < 1 || channels % offsetGroup != 0 || outputs % group != 0 ||
      filter.dim(1) != channels / group || channels % group != 0)
    fail(Code::BadNode, fmt::format("expected channels that divide into {} groups and {} offset groups, got {} and {}",
                                    group, offsetGroup, x.type().text(), filter.type().text()));
  std::vector<int64_t> extents, dims{batch, outputs};
  for (size_t i = 0; i < window.axes(); ++i) {
    const int64_t padded = x.dim(static_cast<int>(i) + 2) + window.pads[i] + window.pads[i + window.axes()];
    if (padded < window.reach(i) || x.dim(static_cast<int>(i) + 2) == 0)
      fail(Code::BadNode,
           fmt::format("expected windows that fit into {}, got a reach of {}", x.type().text(), window.reach(i)));
    extents.push_back(x.dim(static_cast<int>(i) + 2));
    dims.push_back((padded - window.reach(i)) / window.strides[i] + 1);
  }
  const Shape result = orFail(Shape::create({dims.begin() + 2, dims.end()}));
  const int64_t taps = product(filter.shape(), 2, filter.rank()), windows = result.elements();
  const int64_t places = product(x.shape(), 2, x.rank());
  const auto shaped = [&](Value v, int64_t perTap) {
    std::vector<int64_t> expected{batch, offsetGroup * taps * perTap};
    expected.insert(expected.end(), result.dims().begin(), result.dims().end());
    if (v.shape().dims() != expected)
      fail(Code::BadNode, fmt::format("expected the shape {}, got {}", listText(expected), v.type().text()));
    return b.reshaped(b.casted(v, wideKind(v.kind())), {batch, offsetGroup, taps, perTap, windows});
  };
  const Value moves = shaped(offset, spatial);

  // Points [batch, offset group, tap, window]; the channels of each offset group are rows of their own.
  std::vector<std::vector<Tap>> axes;
  for (size_t i = 0; i < window.axes(); ++i) {
    const Value move = b.reshaped(sliced(b, moves, 3, static_cast<int64_t>(i), 1), {batch, offsetGroup, taps, windows});
    axes.push_back(linearTaps(b, b.add(move, windowPlaces(b, window, result, i, move.kind())), extents[i]));
  }
  const Value wide = b.casted(x, moves.kind());
  const Value rows = rowsOf(b, b.reshaped(wide, {batch * offsetGroup, channels / offsetGroup, places}));
  const Value base = b.reshaped(batchBase(b, batch * offsetGroup, places), {batch, offsetGroup, 1, 1});
  Value samples = sampledRows(b, rows, base, axes, extents);
  if (c.has(4)) samples = b.mul(samples, b.reshaped(shaped(c.in(4), 1), {batch, offsetGroup, taps, windows, 1}));

  // [batch, offset group, tap, window, channel] as columns [batch, group, channel * tap, window].
  const Value columns =
      b.reshaped(b.transposed(samples, {0, 1, 4, 2, 3}), {batch, group, channels / group * taps, windows});
  const Value weights = b.reshaped(b.casted(filter, wide.kind()), {group, outputs / group, channels / group * taps});
  Value y = b.reshaped(b.matMul(weights, columns), {batch, outputs, windows});
  if (c.has(3)) {
    if (c.in(3).shape() != Shape{outputs})
      fail(Code::BadNode, fmt::format("expected {} biases, got {}", outputs, c.in(3).type().text()));
    y = b.add(y, b.reshaped(b.casted(c.in(3), y.kind()), {outputs, 1}));
  }
  c.out(b.casted(b.reshaped(y, dims), x.kind()));
}

}  // namespace

std::span<const OpRow> samplingRows() {
  static constexpr OpRow rows[] = {
      {"GridSample", gridSample, 16}, {"AffineGrid", affineGrid, 20}, {"DeformConv", deformConv, 19}};
  return rows;
}

}  // namespace aglow::onnx
