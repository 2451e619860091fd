// Operators on regions and boxes of images: RoiAlign, MaxRoiPool and NonMaxSuppression.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "import/onnx/op_sample.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"
#include "import/onnx/op_window.h"
#include "tensor/convert.h"

namespace aglow::onnx {

namespace {

// Column `index` of regions [n, columns], as [n, 1, ...] with `rank` axes.
Value regionColumn(Builder& b, Value regions, int64_t index, int64_t rank) {
  std::vector<int64_t> dims(static_cast<size_t>(rank), 1);
  dims.front() = regions.dim(0);
  return b.reshaped(sliced(b, regions, 1, index, 1), dims);
}

// RoiAlign along one axis.
struct AlignAxis {
  int64_t extent;   // of the image
  int64_t bins;     // of the result
  int64_t samples;  // a bin, the most of all regions
  Value start, size;
  Value counts;  // samples a bin of each region, [n, 1, 1]; empty when all have as many
};

// Samples along an axis, [n, bins * samples]: two taps each.
std::vector<Tap> alignTaps(Builder& b, const AlignAxis& a) {
  const auto n = [&](double value) { return b.scalarLike(a.start, value); };
  const ElemKind kind = a.start.kind();
  const Value bin = b.div(a.size, n(static_cast<double>(a.bins)));
  const Value sample = b.add(iota(b, a.samples, 2, 3, kind), n(0.5));
  const Value count = a.counts ? a.counts : n(static_cast<double>(a.samples));
  const Value first = b.add(a.start, b.mul(iota(b, a.bins, 1, 3, kind), bin));
  const Value place = b.add(first, b.div(b.mul(sample, bin), count));
  Value valid = b.logicalAnd(b.lessOrEqual(n(-1), place), b.lessOrEqual(place, n(static_cast<double>(a.extent))));
  if (a.counts) valid = b.logicalAnd(valid, b.less(sample, a.counts));

  const Value last = n(static_cast<double>(a.extent - 1)), held = b.max(place, n(0));
  const Value low = b.min(b.floor(held), last), high = b.min(b.add(low, n(1)), last);
  const Value share = b.where(b.less(low, last), b.sub(held, low), n(0));
  const auto tap = [&](Value at, Value weight) -> Tap {
    const std::vector<int64_t> dims{place.dim(0), a.bins * a.samples};
    // Held at 0 as well, for places that are NaN.
    const Value index = b.casted(b.max(at, n(0)), ElemKind::Int64);
    return {b.reshaped(index, dims), b.reshaped(b.where(valid, weight, n(0)), dims)};
  };
  return {tap(low, b.sub(n(1), share)), tap(high, share)};
}

// Whether sample i of a bin exists, [n, 1, samples]-like for one axis, spread over [n, bins * samples].
Value sampleExists(Builder& b, const AlignAxis& a) {
  const Value exists = b.less(iota(b, a.samples, 2, 3, a.start.kind()), a.counts);
  const int64_t n = a.counts.dim(0);
  return b.reshaped(b.expand(exists, {.shape = {n, a.bins, a.samples}}), {n, a.bins * a.samples});
}

void roiAlign(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0), batchIndices = c.in(2);
  if (x.rank() != 4 || c.in(1).rank() != 2 || c.in(1).dim(1) != 4 || batchIndices.shape() != Shape{c.in(1).dim(0)})
    fail(Code::BadNode, fmt::format("expected X [n, c, h, w], rois [r, 4] and batch_indices [r], got {}, {} and {}",
                                    x.type().text(), c.in(1).type().text(), batchIndices.type().text()));
  const std::string mode = c.word("mode", "avg");
  if (mode != "avg" && mode != "max") fail(Code::BadNode, fmt::format("expected 'mode' avg or max, got '{}'", mode));
  const std::string corners =
      c.word("coordinate_transformation_mode", c.version < 16 ? "output_half_pixel" : "half_pixel");
  const bool halfPixel = corners == "half_pixel";
  if (!halfPixel && corners != "output_half_pixel")
    fail(Code::BadNode,
         fmt::format("expected 'coordinate_transformation_mode' half_pixel or output_half_pixel, got '{}'", corners));
  const int64_t bins[] = {c.integer("output_height", 1), c.integer("output_width", 1)};
  const int64_t ratio = c.integer("sampling_ratio", 0);
  constexpr int64_t kMost = 1 << 16;
  if (std::min(bins[0], bins[1]) < 1 || std::max({bins[0], bins[1], ratio}) > kMost || ratio < 0)
    fail(Code::BadNode, fmt::format("expected extents of the result from 1 and a ratio from 0 to {}, got {}, {} and {}",
                                    kMost, bins[0], bins[1], ratio));
  const int64_t regions = c.in(1).dim(0), channels = x.dim(1);
  if (regions == 0 || channels == 0) {
    c.out(b.splat({.elem = x.kind(), .shape = {regions, channels, bins[0], bins[1]}}));
    return;
  }
  if (x.type().elements() == 0) fail(Code::BadNode, fmt::format("expected elements, got {}", x.type().text()));

  const ElemKind kind = wideKind(x.kind());
  const Value scaled = b.sub(b.mul(b.casted(c.in(1), kind), b.scalar(kind, c.real("spatial_scale", 1))),
                             b.scalar(kind, halfPixel ? 0.5 : 0));
  AlignAxis axes[2];
  for (int i = 0; i < 2; ++i) {
    AlignAxis& a = axes[i];
    a.extent = x.dim(i + 2);
    a.bins = bins[i];
    a.samples = ratio;
    a.start = regionColumn(b, scaled, 1 - i, 3);
    a.size = b.sub(regionColumn(b, scaled, 3 - i, 3), a.start);
    if (!halfPixel) a.size = b.max(a.size, b.scalar(kind, 1));
    if (ratio > 0) continue;
    // As many samples as elements of x lie in a bin: the regions' sizes decide a shape.
    std::vector<double> counts = c.constant(a.size).doubles();
    for (double& count : counts) count = std::max(0.0, std::ceil(count / static_cast<double>(a.bins)));
    const double most = *std::max_element(counts.begin(), counts.end());
    if (!(most <= kMost)) fail(Code::LimitReached, fmt::format("a region has more than {} samples a bin", kMost));
    a.samples = std::max<int64_t>(1, static_cast<int64_t>(most));
    if (std::any_of(counts.begin(), counts.end(), [&](double n) { return n != most || n == 0; }))
      a.counts = b.constant(Tensor::of(Type(kind, Shape{regions, 1, 1}), counts));
  }

  // Points [region, rows of samples, columns of samples].
  std::vector<Tap> rows = alignTaps(b, axes[0]), columns = alignTaps(b, axes[1]);
  for (Tap& tap : rows) tap = {unsqueezed(b, tap.index, 2), unsqueezed(b, tap.weight, 2)};
  for (Tap& tap : columns) tap = {unsqueezed(b, tap.index, 1), unsqueezed(b, tap.weight, 1)};
  const Value places = b.constant(Tensor::of(Type(ElemKind::Int64, Shape{}), std::vector{x.dim(2) * x.dim(3)}));
  const Value base = b.mul(b.reshaped(b.casted(batchIndices, ElemKind::Int64), {regions, 1, 1}), places);
  const std::vector<Value> parts =
      sampledParts(b, rowsOf(b, b.casted(x, kind)), base, {rows, columns}, {x.dim(2), x.dim(3)});
  const bool average = mode == "avg";
  Value joined = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) joined = average ? b.add(joined, parts[i]) : b.max(joined, parts[i]);
  const bool uneven = axes[0].counts || axes[1].counts;
  if (uneven && !average) {
    for (int i = 0; i < 2; ++i) {
      if (!axes[i].counts) continue;
      const Value exists = unsqueezed(b, unsqueezed(b, sampleExists(b, axes[i]), i == 0 ? 2 : 1), 3);
      joined = b.where(exists, joined, b.scalarLike(joined, -std::numeric_limits<double>::infinity()));
    }
  }
  joined = b.reshaped(joined, {regions, bins[0], axes[0].samples, bins[1], axes[1].samples, channels});
  Value y = b.reduced(joined, average ? "sum" : "max", {2, 4}, false);
  if (average) {
    for (const AlignAxis& a : axes) {
      const Value count = a.counts ? b.max(b.reshaped(a.counts, {regions, 1, 1, 1}), b.scalarLike(y, 1))
                                   : b.scalarLike(y, static_cast<double>(a.samples));
      y = b.div(y, count);
    }
  } else if (uneven) {
    const Value lowest = b.scalarLike(y, -std::numeric_limits<double>::infinity());
    y = b.where(b.equal(y, lowest), b.scalarLike(y, 0), y);
  }
  c.out(b.casted(b.transposed(y, {0, 3, 1, 2}), x.kind()));
}

// Which elements of an image's axis lie in each bin of each region: bool[regions, bins, extent].
Value binMembers(Builder& b, Value start, Value end, int64_t bins, int64_t extent) {
  const ElemKind kind = start.kind();
  const auto n = [&](double value) { return b.scalar(kind, value); };
  const Value size = b.max(b.add(b.sub(end, start), n(1)), n(1));
  const Value bin = b.div(size, n(static_cast<double>(bins)));
  const Value index = iota(b, bins, 1, 3, kind);
  const Value low = b.add(b.floor(b.mul(index, bin)), start);
  const Value high = b.add(b.ceil(b.mul(b.add(index, n(1)), bin)), start);
  const Value place = iota(b, extent, 2, 3, kind);
  return b.logicalAnd(b.lessOrEqual(low, place), b.less(place, high));
}

void maxRoiPool(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0), rois = c.in(1);
  const std::vector<int64_t> pooled = c.ints("pooled_shape");
  if (x.rank() != 4 || rois.rank() != 2 || rois.dim(1) != 5)
    fail(Code::BadNode,
         fmt::format("expected X [n, c, h, w] and rois [r, 5], got {} and {}", x.type().text(), rois.type().text()));
  if (pooled.size() != 2 || std::min(pooled[0], pooled[1]) < 1)
    fail(Code::BadNode, fmt::format("expected 2 extents in 'pooled_shape', got {}", listText(pooled)));
  const ElemKind kind = wideKind(x.kind());
  const Value half = b.scalar(kind, 0.5);
  const auto corner = [&](int64_t column) {
    const Value v = b.mul(regionColumn(b, b.casted(rois, kind), column, 3), b.scalar(kind, c.real("spatial_scale", 1)));
    return b.mul(b.sign(v), b.floor(b.add(b.abs(v), half)));  // halves away from zero
  };
  const Value lowest = b.scalar(kind, -std::numeric_limits<double>::infinity());
  const int64_t regions = rois.dim(0);
  const Value index = b.casted(b.reshaped(sliced(b, rois, 1, 0, 1), {regions}), ElemKind::Int64);
  Value y = b.gather(b.casted(x, kind), index);  // [region, channel, h, w]
  // The largest member of each bin, first along w, then along h.
  const Value columns = binMembers(b, corner(1), corner(3), pooled[1], x.dim(3));
  y = b.reduced(b.where(unsqueezed(b, unsqueezed(b, columns, 1), 1), unsqueezed(b, y, 3), lowest), "max", {4}, false);
  const Value rows = binMembers(b, corner(2), corner(4), pooled[0], x.dim(2));
  const Value wide = unsqueezed(b, b.transposed(y, {0, 1, 3, 2}), 2);  // [region, channel, 1, pooled w, h]
  y = b.reduced(b.where(unsqueezed(b, unsqueezed(b, rows, 2), 1), wide, lowest), "max", {4}, false);
  c.out(b.casted(b.where(b.equal(y, lowest), b.scalar(kind, 0), y), x.kind()));
}

struct Box {
  double top, left, bottom, right;

  double area() const { return (bottom - top) * (right - left); }
};

bool overlap(const Box& p, const Box& q, double threshold) {
  const double height = std::min(p.bottom, q.bottom) - std::max(p.top, q.top);
  if (!(height > 0)) return false;
  const double width = std::min(p.right, q.right) - std::max(p.left, q.left);
  if (!(width > 0) || !(p.area() > 0 && q.area() > 0)) return false;
  const double common = height * width;
  // In single precision, so that a ratio that equals the threshold is not above it.
  return static_cast<float>(common / (p.area() + q.area() - common)) > static_cast<float>(threshold);
}

// A box of one class as a number; the better one has the greater: a higher score, any score against none, the lower
// index between equals. Comparing such numbers takes no branch that depends on the scores.
uint64_t candidate(double score, uint32_t index) {
  constexpr uint32_t sign = uint32_t{1} << 31;
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(score) + 0.0F);  // one zero of two
  const uint32_t rank = std::isnan(score) ? 0 : (bits & sign) != 0 ? ~bits : bits | sign;
  return uint64_t{rank} << 32 | static_cast<uint32_t>(~index);
}

// How many boxes remain depends on their values, so they are chosen when compiling.
void nonMaxSuppression(OpImport& c) {
  const Value boxes = c.in(0), scores = c.in(1);
  if (boxes.rank() != 3 || boxes.dim(2) != 4 || scores.rank() != 3 || scores.dim(0) != boxes.dim(0) ||
      scores.dim(2) != boxes.dim(1))
    fail(Code::BadNode, fmt::format("expected boxes [n, b, 4] and scores [n, c, b], got {} and {}", boxes.type().text(),
                                    scores.type().text()));
  const int64_t most = std::min(c.has(2) ? c.constantInt(2) : 0, boxes.dim(1));
  const double overlapLimit = c.has(3) ? c.constantReal(3) : 0;
  const std::optional<double> scoreLimit = c.has(4) ? std::optional(c.constantReal(4)) : std::nullopt;
  const bool centred = c.flag("center_point_box");
  const Tensor corners = c.constant(boxes), values = c.constant(scores);
  const int64_t count = boxes.dim(1), classes = scores.dim(1);

  const auto boxAt = [&](int64_t index) -> Box {
    double v[4];
    widen(corners.type().kind(), corners.data(), 4 * index, 4, 1, v);
    if (centred) return {v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2};
    return {std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]), std::max(v[1], v[3])};
  };
  std::vector<int64_t> chosen;
  std::vector<double> score(static_cast<size_t>(count));
  std::vector<uint64_t> waiting(static_cast<size_t>(count));
  std::vector<Box> kept;
  for (int64_t item = 0; item < boxes.dim(0) && most > 0; ++item) {
    for (int64_t cls = 0; cls < classes; ++cls) {
      widen(values.type().kind(), values.data(), (item * classes + cls) * count, count, 1, score.data());
      auto first = waiting.begin(), end = first;
      for (size_t i = 0; i < score.size(); ++i) {
        *end = candidate(score[i], static_cast<uint32_t>(i));
        end += !scoreLimit || score[i] > *scoreLimit ? 1 : 0;
      }
      // The best are sorted, about as many as are still wanted: the others are rarely asked for.
      kept.clear();
      while (first != end && static_cast<int64_t>(kept.size()) < most) {
        const int64_t wanted = most - static_cast<int64_t>(kept.size());
        const auto last = first + std::min<int64_t>(end - first, wanted + wanted / 4 + 8);
        if (last != end) std::nth_element(first, last, end, std::greater<>());
        std::sort(first, last, std::greater<>());
        for (; first != last && static_cast<int64_t>(kept.size()) < most; ++first) {
          const auto i = static_cast<int64_t>(~static_cast<uint32_t>(*first));
          const Box box = boxAt(item * count + i);
          if (std::any_of(kept.begin(), kept.end(), [&](const Box& k) { return overlap(box, k, overlapLimit); }))
            continue;
          kept.push_back(box);
          for (const int64_t part : {item, cls, i}) chosen.push_back(part);
        }
      }
    }
  }
  const Shape shape{static_cast<int64_t>(chosen.size() / 3), 3};
  c.out(c.b.constant(Tensor::of(Type(ElemKind::Int64, shape), chosen)));
}

}  // namespace

std::span<const OpRow> roiRows() {
  static constexpr OpRow rows[] = {
      {"RoiAlign", roiAlign, 10}, {"MaxRoiPool", maxRoiPool}, alone({"NonMaxSuppression", nonMaxSuppression, 10})};
  return rows;
}

}  // namespace aglow::onnx
