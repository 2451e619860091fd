// Col2Im: windows put back together to the image that they were cut from, by slices of taps that are moved and added,
// or where these would be too many by a scatter.
#include <algorithm>

#include "graph/op_views.h"
#include "graph/wide.h"
#include "lower/rules.h"
#include "ops/window.h"
#include "support/check.h"

namespace aglow::lowering {

namespace {

// One axis of a picture and of the windows that cover it. Taps a stride apart fall on the same places of the windows
// after each other: tap `group * stride + phase`, with `front` taps of zeros before the first, falls on place
// (window + shift(group)) * stride + phase. Dilated taps are groups of their own, which takes a stride of 1.
struct Cover {
  int64_t image, block, windows, stride, dilation, pad;

  // Whether tap groups cover the picture evenly, without many taps of zeros.
  bool isEven() const { return stride == 1 || (dilation == 1 && groups() * stride <= 4 * block); }
  int64_t front() const { return (stride - pad % stride) % stride; }
  int64_t groups() const { return (front() + block + stride - 1) / stride; }
  int64_t shift(int64_t group) const { return stride == 1 ? group * dilation - pad : group - (pad + front()) / stride; }
  int64_t places() const { return (image + stride - 1) / stride; }
};

// The sum of all tap groups, each moved to its places; the phases of a stride lie side by side until the end.
Value summedTaps(Builder& b, Value x, const std::vector<int64_t>& outer, const std::vector<Cover>& covers) {
  std::vector<int64_t> split = outer, grouped = outer, moved = outer, joined = outer, image = outer;
  std::vector<int64_t> front(outer.size()), back(outer.size()), perm, groups;
  const auto lead = static_cast<int64_t>(outer.size()), axes = static_cast<int64_t>(covers.size());
  for (const Cover& cover : covers) {
    split.push_back(cover.block);
    front.push_back(cover.front());
    back.push_back(cover.groups() * cover.stride - cover.block - cover.front());
    grouped.insert(grouped.end(), {cover.groups(), cover.stride});
    moved.push_back(cover.stride);
    joined.push_back(cover.places() * cover.stride);
    image.push_back(cover.image);
    groups.push_back(cover.groups());
  }
  for (const Cover& cover : covers) {
    split.push_back(cover.windows);
    front.push_back(0);
    back.push_back(0);
    grouped.push_back(cover.windows);
    moved.push_back(cover.places());
  }
  const Value zero = b.scalarLike(x, 0);
  Value taps = b.reshaped(x, split);
  if (std::any_of(front.begin(), front.end(), [](int64_t n) { return n > 0; }) ||
      std::any_of(back.begin(), back.end(), [](int64_t n) { return n > 0; }))
    taps = b.pad(taps, zero, {.before = front, .after = back});
  taps = b.reshaped(taps, grouped);

  Value sum;
  const Shape all(groups);
  const std::vector<int64_t> strides = all.strides();
  for (int64_t number = 0; number < all.elements(); ++number) {
    SliceAttrs cut{.starts = std::vector<int64_t>(grouped.size(), 0), .sizes = grouped};
    std::vector<int64_t> part = moved, before(moved.size(), 0), after(moved.size(), 0);
    bool inside = true;
    for (int64_t a = 0; a < axes; ++a) {
      const Cover& cover = covers[static_cast<size_t>(a)];
      const int64_t group = number / strides[static_cast<size_t>(a)] % groups[static_cast<size_t>(a)];
      const auto tap = static_cast<size_t>(lead + 2 * a), window = static_cast<size_t>(lead + 2 * axes + a);
      const auto place = static_cast<size_t>(lead + axes + a);
      const int64_t first = cover.shift(group), last = first + cover.windows;
      const int64_t from = std::max<int64_t>(first, 0), to = std::min(last, cover.places());
      inside = inside && from < to;
      cut.starts[tap] = group;
      cut.sizes[tap] = 1;
      cut.starts[window] = from - first;
      cut.sizes[window] = part[place] = to - from;
      before[place] = from;
      after[place] = cover.places() - to;
    }
    if (!inside) continue;
    const Value cropped = b.reshaped(b.slice(taps, cut), part);
    const Value whole = part == moved ? cropped : b.pad(cropped, zero, {.before = before, .after = after});
    sum = sum ? b.add(sum, whole) : whole;
  }
  if (!sum) return b.splat({.elem = x.kind(), .shape = image});
  for (int64_t a = 0; a < lead; ++a) perm.push_back(a);
  for (int64_t a = 0; a < axes; ++a) perm.insert(perm.end(), {lead + axes + a, lead + a});
  const Value y = b.reshaped(b.transposed(sum, perm), joined);
  return joined == image ? y : b.slice(y, {.starts = std::vector<int64_t>(image.size(), 0), .sizes = image});
}

// Every element at its place; what lies on the padding goes to a row past the image.
Value scattered(Builder& b, Value x, const std::vector<int64_t>& outer, const std::vector<Cover>& covers) {
  std::vector<int64_t> block, windows, image;
  for (const Cover& cover : covers) {
    block.push_back(cover.block);
    windows.push_back(cover.windows);
    image.push_back(cover.image);
  }
  const Shape taps(block), grid(windows), picture(image);
  const std::vector<int64_t> tapStrides = taps.strides(), gridStrides = grid.strides(), strideOf = picture.strides();
  std::vector<int64_t> targets;
  for (int64_t t = 0; t < taps.elements(); ++t) {
    for (int64_t w = 0; w < grid.elements(); ++w) {
      int64_t target = 0;
      for (size_t i = 0; i < covers.size() && target >= 0; ++i) {
        const Cover& cover = covers[i];
        const int64_t place = w / gridStrides[i] % cover.windows * cover.stride - cover.pad +
                              t / tapStrides[i] % cover.block * cover.dilation;
        target = place < 0 || place >= cover.image ? -1 : target + place * strideOf[i];
      }
      targets.push_back(target < 0 ? picture.elements() : target);
    }
  }
  const Value split = b.reshaped(x, {outer[0], outer[1], taps.elements() * grid.elements()});
  const Value empty = b.splat({.elem = x.kind(), .shape = {picture.elements() + 1, outer[0], outer[1]}});
  const Value summed = b.scatter(empty, b.ints(targets), b.transposed(split, {2, 0, 1}), {.reduction = "add"});
  const Value inside = b.slice(summed, {.starts = {0, 0, 0}, .sizes = {picture.elements(), outer[0], outer[1]}});
  std::vector<int64_t> dims = outer;
  dims.insert(dims.end(), image.begin(), image.end());
  return b.reshaped(b.transposed(inside, {1, 2, 0}), dims);
}

}  // namespace

std::vector<Value> col2Im(Builder& b, Node& node) {
  const Col2ImNode v(node);
  const Value x = v.x();
  const Shape& image = node.type().shape();
  if (x.type().elements() == 0) return {b.splat({.elem = x.kind(), .shape = image.dims()})};
  const Result<Window> window = windowOf(node.attrs(), v.kernel());
  AGLOW_CHECK(window.ok(), "a window that its type rule takes");
  const Result<std::vector<int64_t>> windows = wholeWindows(*window, image);
  AGLOW_CHECK(windows.ok(), "windows that its type rule takes");
  constexpr int64_t kFew = 64;  // sums that are worth their nodes
  std::vector<Cover> covers;
  int64_t sums = 1;
  bool even = true;
  for (int axis = 0; axis < window->axes(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    covers.push_back({image[axis + 2], window->kernel[i], (*windows)[i], window->strides[i], window->dilations[i],
                      window->before[i]});
    even = even && covers.back().isEven() && covers.back().groups() <= kFew;
    sums *= even ? covers.back().groups() : 1;
    even = even && sums <= kFew;
  }
  const Value wide = b.casted(x, wideKind(x.kind()));
  const std::vector<int64_t> outer{image[0], image[1]};
  return {b.casted(even ? summedTaps(b, wide, outer, covers) : scattered(b, wide, outer, covers), x.kind())};
}

}  // namespace aglow::lowering
