// Col2Im: windows put back together to the image that they were cut from.
#include <fmt/format.h>

#include <algorithm>

#include "graph/wide.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

std::vector<int64_t> listOr(const OpImport& c, std::string_view name, size_t count, int64_t otherwise, int64_t least) {
  std::vector<int64_t> list = c.ints(name);
  if (list.empty()) list.assign(count, otherwise);
  constexpr int64_t kMost = int64_t{1} << 30;
  if (list.size() != count || *std::min_element(list.begin(), list.end()) < least ||
      *std::max_element(list.begin(), list.end()) > kMost)
    fail(Code::BadNode, fmt::format("expected {} entries from {} in '{}', got {}", count, least, name, listText(list)));
  return list;
}

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

// Every column is a window; elements of windows that share a place add up there.
void col2Im(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  const std::vector<int64_t> image = c.constantInts(1), block = c.constantInts(2);
  const size_t axes = image.size();
  if (x.rank() != 3 || axes == 0 || block.size() != axes)
    fail(Code::BadNode, fmt::format("expected [n, c * block, l] and as many extents of image and block, got {}, {}, {}",
                                    x.type().text(), listText(image), listText(block)));
  const Shape picture = orFail(Shape::create(image)), taps = orFail(Shape::create(block));
  const std::vector<int64_t> dilations = listOr(c, "dilations", axes, 1, 1), strides = listOr(c, "strides", axes, 1, 1),
                             pads = listOr(c, "pads", 2 * axes, 0, 0);
  std::vector<int64_t> windows;
  for (size_t i = 0; i < axes; ++i) {
    const int64_t reach = block[i] < 1 || block[i] > (1 << 30) ? 0 : dilations[i] * (block[i] - 1) + 1;
    const int64_t free = image[i] + pads[i] + pads[i + axes] - reach;
    if (reach == 0 || free < 0)
      fail(Code::BadNode, fmt::format("expected a block that fits into the padded image, got {} for {}",
                                      listText(block), listText(image)));
    windows.push_back(free / strides[i] + 1);
  }
  const Shape grid = orFail(Shape::create(windows));
  if (x.dim(2) != grid.elements() || x.dim(1) % taps.elements() != 0)
    fail(Code::BadNode, fmt::format("expected {} columns and channels that are a multiple of {}, got {}",
                                    grid.elements(), taps.elements(), x.type().text()));
  const int64_t batch = x.dim(0), channels = x.dim(1) / taps.elements();

  std::vector<int64_t> dims{batch, channels};
  dims.insert(dims.end(), image.begin(), image.end());
  if (x.type().elements() == 0) {
    c.out(b.splat({.elem = x.kind(), .shape = dims}));
    return;
  }
  const ElemKind kind = wideKind(x.kind());
  constexpr int64_t kFew = 64;  // sums that are worth their nodes
  std::vector<Cover> covers;
  int64_t sums = 1;
  bool even = true;
  for (size_t i = 0; i < axes; ++i) {
    covers.push_back({image[i], block[i], windows[i], strides[i], dilations[i], pads[i]});
    even = even && covers.back().isEven() && covers.back().groups() <= kFew;
    sums *= even ? covers.back().groups() : 1;
    even = even && sums <= kFew;
  }
  if (even) {
    c.out(b.casted(summedTaps(b, b.casted(x, kind), {batch, channels}, covers), x.kind()));
    return;
  }
  // Where each element goes; what lies on the padding goes to a row past the image.
  std::vector<int64_t> targets;
  const std::vector<int64_t> tapStrides = taps.strides(), gridStrides = grid.strides(), strideOf = picture.strides();
  for (int64_t t = 0; t < taps.elements(); ++t) {
    for (int64_t w = 0; w < grid.elements(); ++w) {
      int64_t target = 0;
      for (size_t i = 0; i < axes && target >= 0; ++i) {
        const int64_t place =
            w / gridStrides[i] % windows[i] * strides[i] - pads[i] + t / tapStrides[i] % block[i] * dilations[i];
        target = place < 0 || place >= image[i] ? -1 : target + place * strideOf[i];
      }
      targets.push_back(target < 0 ? picture.elements() : target);
    }
  }
  const Value split = b.reshaped(b.casted(x, kind), {batch, channels, taps.elements() * grid.elements()});
  const Value updates = b.transposed(split, {2, 0, 1});
  const Value empty = b.splat({.elem = kind, .shape = {picture.elements() + 1, batch, channels}});
  const Value summed = b.scatter(empty, b.ints(targets), updates, {.reduction = "add"});
  const Value y = b.transposed(sliced(b, summed, 0, 0, picture.elements()), {1, 2, 0});
  c.out(b.casted(b.reshaped(y, dims), x.kind()));
}

}  // namespace

std::span<const OpRow> windowRows() {
  static constexpr OpRow rows[] = {{"Col2Im", col2Im, 18}};
  return rows;
}

}  // namespace aglow::onnx
