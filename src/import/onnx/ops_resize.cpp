// Resize of all opsets, and Upsample before it.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

// The axes that scales, sizes and roi speak of, in their order.
std::vector<int64_t> resizedAxes(const OpImport& c, int64_t rank) {
  if (!c.hasAttr("axes")) return range(0, rank);
  std::vector<int64_t> axes = c.ints("axes");
  c.axes(axes, rank);  // refuses duplicates
  for (int64_t& axis : axes) axis = c.axis(axis, rank);
  return axes;
}

template <class T>
void checkCount(std::string_view name, const std::vector<T>& list, size_t expected) {
  if (list.size() != expected)
    fail(Code::BadNode, fmt::format("expected {} entries in '{}', got {}", expected, name, list.size()));
}

int64_t wholeExtent(double exact) {
  if (!(exact >= 0 && exact < 1e15))
    fail(Code::BadNode, fmt::format("expected scales that give an extent, got {}", exact));
  return static_cast<int64_t>(exact);
}

// The number that was meant by an f32: the shortest decimal one. Exporters write 0.7 and compute with 0.7, not with
// the f32 nearest to it, and where a multiple of 1 / scale is whole the difference decides on the nearest element.
double decimal(double scale) {
  char digits[32];
  const auto [end, fault] = std::to_chars(digits, digits + sizeof(digits), static_cast<float>(scale));
  double value = scale;
  if (fault == std::errc()) std::from_chars(digits, end, value);
  return value;
}

void applyScales(Value x, const std::vector<double>& scales, const std::vector<int64_t>& axes, ResizeAttrs& attrs) {
  checkCount("scales", scales, axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    attrs.scales[axis] = decimal(scales[i]);
    // In single precision, as scales are: 0.7 of 10 elements are 7.
    attrs.sizes[axis] = wholeExtent(static_cast<float>(scales[i]) * static_cast<float>(x.dim(static_cast<int>(axis))));
  }
}

std::string aspectPolicy(const OpImport& c) {
  const std::string policy = c.word("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    fail(Code::BadNode,
         fmt::format("expected 'keep_aspect_ratio_policy' stretch, not_larger or not_smaller, got '{}'", policy));
  return policy;
}

void applySizes(OpImport& c, const std::vector<int64_t>& sizes, const std::vector<int64_t>& axes, ResizeAttrs& attrs) {
  checkCount("sizes", sizes, axes.size());
  const std::string policy = aspectPolicy(c);
  double common = policy == "not_larger" ? HUGE_VAL : 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    const int64_t extent = c.in(0).dim(static_cast<int>(axis));
    if (sizes[i] < 1 || extent < 1)
      fail(Code::BadNode,
           fmt::format("expected sizes and extents of at least 1, got {} for an extent of {}", sizes[i], extent));
    const double scale = static_cast<double>(sizes[i]) / static_cast<double>(extent);
    attrs.scales[axis] = scale;
    attrs.sizes[axis] = sizes[i];
    common = policy == "not_larger" ? std::min(common, scale) : std::max(common, scale);
  }
  if (policy == "stretch") return;
  for (const int64_t a : axes) {
    const auto axis = static_cast<size_t>(a);
    attrs.scales[axis] = common;
    attrs.sizes[axis] = wholeExtent(common * static_cast<double>(c.in(0).dim(static_cast<int>(axis))) + 0.5);
  }
}

void applyRegion(OpImport& c, const std::vector<int64_t>& axes, ResizeAttrs& attrs) {
  const auto rank = static_cast<size_t>(c.in(0).rank());
  attrs.roi.assign(2 * rank, 0);
  std::fill(attrs.roi.begin() + static_cast<int64_t>(rank), attrs.roi.end(), 1);
  const std::vector<double> roi = c.constant(1).doubles();
  checkCount("roi", roi, 2 * axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    attrs.roi[static_cast<size_t>(axes[i])] = roi[i];
    attrs.roi[static_cast<size_t>(axes[i]) + rank] = roi[i + axes.size()];
  }
}

ResizeAttrs startOf(const OpImport& c, Value x) {
  ResizeAttrs attrs{.sizes = x.shape().dims(), .scales = std::vector<double>(static_cast<size_t>(x.rank()), 1.0)};
  attrs.mode = c.word("mode", "nearest");
  if (attrs.mode == "bilinear") attrs.mode = "linear";
  return attrs;
}

void resize(OpImport& c) {
  const std::vector<int64_t> axes = resizedAxes(c, c.in(0).rank());
  ResizeAttrs attrs = startOf(c, c.in(0));
  attrs.coordinates = c.word("coordinate_transformation_mode", "half_pixel");
  attrs.nearestMode = c.word("nearest_mode", "round_prefer_floor");
  attrs.cubicCoeffA = c.real("cubic_coeff_a", -0.75);
  attrs.excludeOutside = c.flag("exclude_outside");
  attrs.antialias = c.flag("antialias");
  aspectPolicy(c);  // also where scales are given
  attrs.extrapolationValue = c.real("extrapolation_value", 0);
  if (attrs.antialias && attrs.mode == "nearest")
    fail(Code::BadNode, "expected mode linear or cubic with 'antialias', got nearest");
  // An empty tensor stands for scales that are not given.
  const bool scaled = c.has(2) && c.in(2).type().elements() > 0, sized = c.has(3) && c.in(3).type().elements() > 0;
  if (scaled == sized && c.in(0).rank() > 0)
    fail(Code::BadNode, fmt::format("expected either 'scales' or 'sizes', got {}", scaled ? "both" : "none"));
  if (scaled) applyScales(c.in(0), c.constant(2).doubles(), axes, attrs);
  if (sized) applySizes(c, c.constantInts(3), axes, attrs);
  if (attrs.coordinates == "tf_crop_and_resize") applyRegion(c, axes, attrs);
  c.out(c.b.resize(c.in(0), attrs));
}

// Opset 10's Resize and Upsample: elements lie at their lower corner. Of two elements the nearest is the lower one
// where an axis grows, and the upper one where it shrinks, which takes a step of its own.
void corner(OpImport& c, const std::vector<double>& scales) {
  const auto resized = [&](Value x, const std::string& nearestMode, const std::vector<double>& by) {
    ResizeAttrs attrs = startOf(c, x);
    attrs.coordinates = "asymmetric";
    attrs.nearestMode = nearestMode;
    applyScales(x, by, range(0, x.rank()), attrs);
    return c.b.resize(x, attrs);
  };
  std::vector<double> shrinking(scales.size(), 1), others = scales;
  if (c.word("mode", "nearest") == "nearest")
    for (size_t i = 0; i < scales.size(); ++i)
      if (scales[i] < 1) std::swap(shrinking[i], others[i]);
  const bool shrinks = others != scales;
  c.out(resized(shrinks ? resized(c.in(0), "ceil", shrinking) : c.in(0), "floor", others));
}

void resize10(OpImport& c) { corner(c, c.constant(1).doubles()); }
void upsample(OpImport& c) { corner(c, c.reals("scales")); }

}  // namespace

std::span<const OpRow> resizeRows() {
  static constexpr OpRow rows[] = {
      {"Resize", resize10, 10, 10}, {"Resize", resize, 11}, {"Upsample", upsample, 7, 8}, {"Upsample", resize10, 9, 9}};
  return rows;
}

}  // namespace aglow::onnx
