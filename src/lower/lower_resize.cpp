// Resampling axis by axis: where the elements of the result lie in x is known when compiling, so each axis is a gather
// (nearest), or a sum of gathers times constant weights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/op_views.h"
#include "graph/wide.h"
#include "lower/rules.h"

namespace aglow::lowering {

namespace {

constexpr int64_t kMaxTaps = 4096;

// One axis: how an index of the result becomes a place in x.
struct Axis {
  int axis;
  int64_t from, to;  // extents of x and of the result
  double scale;
  double start = 0, end = 1;  // of the region, for tf_crop_and_resize

  double place(const std::string& coordinates, int64_t index) const {
    const auto i = static_cast<double>(index), extent = static_cast<double>(from), width = static_cast<double>(to);
    if (coordinates == "align_corners") return to == 1 ? 0 : i * (extent - 1) / (width - 1);
    if (coordinates == "asymmetric") return i / scale;
    if (coordinates == "tf_half_pixel_for_nn") return (i + 0.5) / scale;
    if (coordinates == "tf_crop_and_resize") {
      const double share = to > 1 ? i * (end - start) / (width - 1) : (end - start) / 2;
      return (start + share) * (extent - 1);
    }
    if (coordinates == "pytorch_half_pixel" && to == 1) return 0;
    const double centred = (i + 0.5) / scale - 0.5;
    // The middle of x and that of the result coincide also where the result lost a fraction of its width.
    if (coordinates == "half_pixel_symmetric") return centred + extent / 2 * (1 - width / (scale * extent));
    return centred;
  }
};

int64_t inside(double index, int64_t extent) {
  return static_cast<int64_t>(std::clamp(index, 0.0, static_cast<double>(extent - 1)));
}

// An f32 of a place is whole or half-way wherever the place is in exact arithmetic.
double nearestTo(const Axis& a, const ResizeNode& v, int64_t i) {
  const std::string& mode = v.nearestMode();
  // What torch and TensorFlow call nearest: their place is an f32 of its own, and this close to an element it counts.
  if (v.coordinates() == "asymmetric" && mode == "floor")
    return std::floor(static_cast<float>(i) * static_cast<float>(1 / a.scale));
  const double place = static_cast<float>(a.place(v.coordinates(), i));
  if (mode == "floor") return std::floor(place);
  if (mode == "ceil") return std::ceil(place);
  return mode == "round_prefer_ceil" ? std::floor(place + 0.5) : std::ceil(place - 0.5);
}

Value nearest(Builder& b, Value x, const ResizeNode& v, const Axis& a) {
  std::vector<int64_t> indices;
  indices.reserve(static_cast<size_t>(a.to));
  for (int64_t i = 0; i < a.to; ++i) indices.push_back(inside(nearestTo(a, v, i), a.from));
  return b.gather(x, b.ints(indices), {.axis = a.axis});
}

// The weight of an element at a distance, in units of the filter's own width.
double weightAt(const ResizeNode& v, double distance) {
  const double d = std::abs(distance), a = v.cubicCoeffA();
  if (v.mode() == "linear") return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// Element t of every window: indices[t][i] and weights[t][i] for element i of the result.
struct Taps {
  std::vector<std::vector<int64_t>> indices;
  std::vector<std::vector<double>> weights;
};

Taps tapsOf(const ResizeNode& v, const Axis& a) {
  const double shrink = v.antialias() ? std::min(a.scale, 1.0) : 1.0;
  const double first = std::floor((v.mode() == "linear" ? -1 : -2) / shrink) + 1;
  if (2 - 2 * first > kMaxTaps)
    fail(Code::LimitReached,
         fmt::format("shrinking axis {} by {} needs windows of more than {} elements", a.axis, 1 / a.scale, kMaxTaps));
  const auto count = static_cast<size_t>(2 - 2 * first), extent = static_cast<size_t>(a.to);
  Taps taps{{count, std::vector<int64_t>(extent)}, {count, std::vector<double>(extent)}};
  for (size_t i = 0; i < extent; ++i) {
    const double place = a.place(v.coordinates(), static_cast<int64_t>(i)), left = std::ceil(place) - 1;
    double sum = 0;
    for (size_t t = 0; t < count; ++t) {
      const double index = left + first + static_cast<double>(t);
      const bool outside = index < 0 || index >= static_cast<double>(a.from);
      const double weight = v.excludeOutside() && outside ? 0 : weightAt(v, shrink * (index - place));
      taps.indices[t][i] = inside(index, a.from);
      taps.weights[t][i] = weight;
      sum += weight;
    }
    for (size_t t = 0; t < count && sum != 0; ++t) taps.weights[t][i] /= sum;
  }
  return taps;
}

// A constant vector that lies along an axis, so that it broadcasts.
Value along(Builder& b, const Axis& a, int rank, ElemKind kind, const std::vector<double>& values) {
  std::vector<int64_t> dims(static_cast<size_t>(rank - a.axis), 1);
  dims.front() = a.to;
  return b.constant(Tensor::of(Type(kind, Shape(std::move(dims))), values));
}

Value weighted(Builder& b, Value x, const ResizeNode& v, const Axis& a) {
  const Taps taps = tapsOf(v, a);
  const auto part = [&](size_t t) {
    return b.mul(b.gather(x, b.ints(taps.indices[t]), {.axis = a.axis}),
                 along(b, a, x.rank(), x.kind(), taps.weights[t]));
  };
  Value sum;
  for (size_t t = 0; t < taps.indices.size(); ++t) {
    const std::vector<double>& weights = taps.weights[t];
    if (std::all_of(weights.begin(), weights.end(), [](double w) { return w == 0; })) continue;
    sum = sum ? b.add(sum, part(t)) : part(t);
  }
  if (!sum) sum = part(0);
  return sum;
}

// The value for places outside of x, where the axis has any.
Value extrapolated(Builder& b, Value y, const ResizeNode& v, const Axis& a) {
  std::vector<double> isInside;
  for (int64_t i = 0; i < a.to; ++i) {
    const double place = static_cast<float>(a.place(v.coordinates(), i));
    isInside.push_back(place >= 0 && place <= static_cast<double>(a.from - 1) ? 1 : 0);
  }
  if (std::all_of(isInside.begin(), isInside.end(), [](double flag) { return flag == 1; })) return y;
  return b.where(along(b, a, y.rank(), ElemKind::Bool, isInside), y, b.scalarLike(y, v.extrapolationValue()));
}

// Integers come back rounded and inside of their range.
Value narrowedTo(Builder& b, Value y, ElemKind kind) {
  if (!isInteger(kind)) return b.casted(y, kind);
  const int bits = elemInfo(kind).bits;
  const double high = std::ldexp(1.0, isSigned(kind) ? bits - 1 : bits);
  // The largest value below the limit that the float kind can tell from it; wide kinds saturate in the conversion.
  y = b.clip(y, b.scalarLike(y, isSigned(kind) ? -high : 0), b.scalarLike(y, bits < 32 ? high - 1 : high));
  return b.casted(b.round(y), kind);
}

}  // namespace

std::vector<Value> resize(Builder& b, Node& node) {
  const ResizeNode v(node);
  const Type& type = v.x().type();
  if (v.type().elements() == 0) return {b.splat({.elem = type.kind(), .shape = v.sizes()})};
  const bool crops = v.coordinates() == "tf_crop_and_resize";
  // As torch has it, an axis that linear weights leave as long as it is stays, also where its scale is not 1: 1.1 makes
  // 9 elements of 9.
  const bool copies =
      v.mode() == "linear" && (v.coordinates() == "half_pixel" || v.coordinates() == "pytorch_half_pixel");
  std::vector<Axis> axes;
  for (int axis = 0; axis < type.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    Axis a{.axis = axis, .from = type.dim(axis), .to = v.sizes()[i], .scale = v.scales()[i]};
    if (crops) {
      a.start = v.roi()[i];
      a.end = v.roi()[i + static_cast<size_t>(type.rank())];
    }
    if (a.from != a.to || (a.scale != 1 && !copies) || a.start != 0 || a.end != 1) axes.push_back(a);
  }
  // Axes that shrink most come first, so that the others have less to do. Neighbours are looked up one by one, rows
  // whole: of axes that grow alike the innermost comes first, of those that shrink alike the outermost.
  std::sort(axes.begin(), axes.end(), [](const Axis& p, const Axis& q) {
    const auto order = [](const Axis& a) {
      return std::pair(static_cast<double>(a.to) / static_cast<double>(a.from), a.to > a.from ? -a.axis : a.axis);
    };
    return order(p) < order(q);
  });

  const bool gathers = v.mode() == "nearest";
  Value y = v.x();
  if (!gathers)
    y = isInteger(type.kind()) ? b.casted(y, elemInfo(type.kind()).bits < 32 ? ElemKind::Float32 : ElemKind::Float64)
                               : widened(b, y);
  for (const Axis& a : axes) y = gathers ? nearest(b, y, v, a) : weighted(b, y, v, a);
  if (crops)
    for (const Axis& a : axes) y = extrapolated(b, y, v, a);
  return {gathers ? y : narrowedTo(b, y, type.kind())};
}

}  // namespace aglow::lowering
