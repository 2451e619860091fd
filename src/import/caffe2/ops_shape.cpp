// Operators that move, join, cut or count elements.
#include <fmt/format.h>

#include <algorithm>

#include "import/caffe2/args.h"
#include "import/caffe2/op_tables.h"
#include "support/sizes.h"

namespace aglow::caffe2 {

namespace {

// The axis that an argument names, or that of the channels.
int64_t joinAxis(const OpImport& c, int64_t rank) {
  if (c.hasAttr("axis")) return c.axis(intArg(c, "axis"), rank);
  return c.axis(channelsLast(c) ? 3 : 1, rank);
}

void concat(OpImport& c) {
  const bool add = flag(c, "add_axis");
  const int64_t axis = joinAxis(c, c.in(0).rank() + int64_t{add});
  std::vector<Value> parts;
  std::vector<int64_t> extents;
  for (int i = 0; i < c.inputs(); ++i) {
    const Value part = add ? unsqueezed(c.b, c.in(i), axis) : c.in(i);
    if (part.rank() <= axis)
      fail(Code::BadNode, fmt::format("expected an axis {} in input {}, got {}", axis, i, part.type().text()));
    parts.push_back(part);
    extents.push_back(part.dim(static_cast<int>(axis)));
  }
  c.out(0, c.b.concat(parts, {.axis = axis}));
  if (c.wants(1)) c.out(1, c.b.constant(Tensor::of(Type(ElemKind::Int32, Shape{c.inputs()}), extents)));
}

void append(OpImport& c) { c.out(c.b.concat({c.in(0), c.in(1)}, {.axis = c.axis(0, c.in(0).rank())})); }

void split(OpImport& c) {
  const Value x = c.in(0);
  const int64_t axis = joinAxis(c, x.rank()), extent = x.dim(static_cast<int>(axis));
  const auto count = static_cast<int64_t>(c.node.outputs.size());
  std::vector<int64_t> sizes = c.has(1) ? c.constantInts(1) : intsArg(c, "split");
  if (sizes.empty() && count > 0 && extent % count == 0) sizes.assign(static_cast<size_t>(count), extent / count);
  int64_t total = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > extent)
      fail(Code::BadNode, fmt::format("expected extents from 0 to {}, got {}", extent, size));
    total += size;
  }
  if (static_cast<int64_t>(sizes.size()) != count || total != extent)
    fail(Code::BadNode, fmt::format("expected {} extents that add up to {}, got {}", count, extent, listText(sizes)));
  int64_t from = 0;
  for (int i = 0; i < static_cast<int>(count); ++i) {
    const int64_t size = sizes[static_cast<size_t>(i)];
    Value part = sliced(c.b, x, axis, from, size);
    if (flag(c, "add_axis") && size == 1) {
      std::vector<int64_t> dims = part.shape().dims();
      dims.erase(dims.begin() + axis);
      part = c.b.reshaped(part, std::move(dims));
    }
    c.out(i, part);
    from += size;
  }
}

// 0 keeps an extent, one -1 takes what is left.
std::vector<int64_t> settled(std::vector<int64_t> dims, Value x) {
  int64_t known = 1;
  size_t open = dims.size();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && i < static_cast<size_t>(x.rank())) dims[i] = x.dim(static_cast<int>(i));
    if (dims[i] == -1 && open == dims.size()) {
      open = i;
      continue;
    }
    const auto total = dims[i] < 0 ? std::nullopt : checkedMul(known, dims[i]);
    if (!total) fail(Code::BadNode, fmt::format("expected a shape for {}, got {}", x.type().text(), listText(dims)));
    known = *total;
  }
  if (open < dims.size()) {
    if (known == 0 || x.type().elements() % known != 0)
      fail(Code::BadNode, fmt::format("expected a shape for {}, got {}", x.type().text(), listText(dims)));
    dims[open] = x.type().elements() / known;
  }
  return dims;
}

void reshape(OpImport& c) {
  const Value x = c.in(0);
  Imported result = c.operand(0);
  result.tensor = c.b.reshaped(x, settled(c.has(1) ? c.constantInts(1) : intsArg(c, "shape"), x));
  c.out(0, result);
  if (c.wants(1)) c.out(1, c.b.ints(x.shape().dims()));
}

// Results that hold the operand's elements keep their scale.
void outAs(OpImport& c, std::vector<int64_t> dims) {
  Imported result = c.operand(0);
  result.tensor = c.b.reshaped(c.in(0), std::move(dims));
  c.out(0, result);
}

void flatten(OpImport& c) {
  const Value x = c.in(0);
  const int64_t wanted = intArg(c, "axis", 1);
  const int64_t axis = wanted == x.rank() ? wanted : c.axis(wanted, x.rank());
  outAs(c, {product(x.shape(), 0, axis), product(x.shape(), axis, x.rank())});
}

void flattenToVec(OpImport& c) { outAs(c, {c.in(0).type().elements()}); }

void expandDims(OpImport& c) {
  std::vector<int64_t> dims = c.in(0).shape().dims(), places = intsArg(c, "dims");
  std::sort(places.begin(), places.end());
  for (const int64_t place : places) {
    if (place < 0 || place > static_cast<int64_t>(dims.size()))
      fail(Code::BadNode, fmt::format("expected places for axes in {}, got {}", c.in(0).type().text(), place));
    dims.insert(dims.begin() + place, 1);
  }
  outAs(c, std::move(dims));
}

void squeeze(OpImport& c) {
  const Value x = c.in(0);
  std::vector<int64_t> dims = x.shape().dims();
  const std::vector<int64_t> axes = c.axes(intsArg(c, "dims"), x.rank());
  for (size_t i = axes.size(); i-- > 0;) {
    if (dims[static_cast<size_t>(axes[i])] != 1)
      fail(Code::BadNode, fmt::format("expected an extent of 1 at axis {} of {}", axes[i], x.type().text()));
    dims.erase(dims.begin() + axes[i]);
  }
  outAs(c, std::move(dims));
}

void prependDim(OpImport& c) {
  const Value x = c.in(0);
  const int64_t size = intArg(c, "dim_size");
  if (x.rank() < 1 || size < 1 || x.dim(0) % size != 0)
    fail(Code::BadNode, fmt::format("expected 'dim_size' to divide the rows of {}, got {}", x.type().text(), size));
  std::vector<int64_t> dims = x.shape().dims();
  dims.front() /= size;
  dims.insert(dims.begin(), size);
  outAs(c, std::move(dims));
}

void mergeDim(OpImport& c) {
  const Value x = c.in(0);
  if (x.rank() < 2) fail(Code::BadNode, fmt::format("expected two axes to merge, got {}", x.type().text()));
  std::vector<int64_t> dims(x.shape().dims().begin() + 1, x.shape().dims().end());
  dims.front() *= x.dim(0);
  outAs(c, std::move(dims));
}

void resizeLike(OpImport& c) { outAs(c, c.in(1).shape().dims()); }

void transpose(OpImport& c) {
  const Value x = c.in(0);
  std::vector<int64_t> perm = intsArg(c, "axes");
  if (perm.empty()) {
    perm = range(0, x.rank());
    std::reverse(perm.begin(), perm.end());
  }
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != range(0, x.rank()))
    fail(Code::BadNode, fmt::format("expected an order of {} axes, got {}", x.rank(), listText(perm)));
  Imported result = c.operand(0);
  result.tensor = c.b.transposed(x, perm);
  c.out(0, result);
}

// Ends and starts below zero count from the end; -1 is the place after the last element.
void slice(OpImport& c) {
  const Value x = c.in(0);
  const std::vector<int64_t> starts = c.has(1) ? c.constantInts(1) : intsArg(c, "starts");
  const std::vector<int64_t> ends = c.has(2) ? c.constantInts(2) : intsArg(c, "ends");
  if (starts.size() != ends.size() || starts.size() > static_cast<size_t>(x.rank()))
    fail(Code::BadNode, fmt::format("expected as many starts as ends, at most {}, got {} and {}", x.rank(),
                                    listText(starts), listText(ends)));
  SliceAttrs attrs{.starts = std::vector<int64_t>(static_cast<size_t>(x.rank()), 0), .sizes = x.shape().dims()};
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t extent = x.dim(static_cast<int>(i));
    const auto place = [&](int64_t at) {
      const int64_t from = at < 0 ? at + extent + 1 : at;
      return std::min(from, extent);
    };
    const int64_t start = place(starts[i]), end = place(ends[i]);
    if (start < 0 || end < start)
      fail(Code::BadNode,
           fmt::format("expected a range along axis {} of {}, got {} to {}", i, x.type().text(), starts[i], ends[i]));
    attrs.starts[i] = start;
    attrs.sizes[i] = end - start;
  }
  Imported result = c.operand(0);
  result.tensor = c.b.slice(x, attrs);
  c.out(0, result);
}

void shape(OpImport& c) {
  const Value x = c.in(0);
  const std::vector<int64_t> axes = intsArg(c, "axes");
  if (axes.empty()) return c.out(c.b.ints(x.shape().dims()));
  std::vector<int64_t> dims;
  for (const int64_t axis : axes) dims.push_back(x.dim(static_cast<int>(c.axis(axis, x.rank()))));
  c.out(c.b.ints(dims));
}

void size(OpImport& c) {
  c.out(c.b.constant(Tensor::of(Type(ElemKind::Int64, Shape{}), std::vector{c.in(0).type().elements()})));
}

void tile(OpImport& c) {
  const Value x = c.in(0);
  const int64_t tiles = c.has(1) ? c.constantInt(1) : intArg(c, "tiles");
  const int64_t axis = c.axis(c.has(2) ? c.constantInt(2) : intArg(c, "axis", 0), x.rank());
  std::vector<int64_t> dims = x.shape().dims();
  const auto total = checkedMul(dims[static_cast<size_t>(axis)], tiles);
  if (tiles < 0 || !total) fail(Code::BadNode, fmt::format("expected a number of tiles, got {}", tiles));
  std::vector<int64_t> wide = dims;
  wide.insert(wide.begin() + axis, tiles);
  dims[static_cast<size_t>(axis)] = *total;
  c.out(c.b.reshaped(c.b.expand(unsqueezed(c.b, x, axis), {.shape = shapeOf(wide).dims()}), dims));
}

// As often along each axis as a list says; missing axes of x are of extent 1.
void numpyTile(OpImport& c) {
  const Value x = c.in(0);
  const std::vector<int64_t> repeats = c.constantInts(1);
  std::vector<int64_t> dims = x.shape().dims(), split, wide, whole;
  if (repeats.size() > dims.size()) dims.insert(dims.begin(), repeats.size() - dims.size(), 1);
  if (repeats.size() != dims.size())
    fail(Code::BadNode, fmt::format("expected {} numbers of repeats, got {}", dims.size(), listText(repeats)));
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto total = checkedMul(dims[i], repeats[i]);
    if (repeats[i] < 0 || !total)
      fail(Code::BadNode, fmt::format("expected repeats from 0 on, got {}", listText(repeats)));
    split.insert(split.end(), {1, dims[i]});
    wide.insert(wide.end(), {repeats[i], dims[i]});
    whole.push_back(*total);
  }
  whole = shapeOf(whole).dims();
  c.out(c.b.reshaped(c.b.expand(c.b.reshaped(x, split), {.shape = shapeOf(wide).dims()}), whole));
}

// To a shape that both x and what is asked for broadcast to.
void expand(OpImport& c) {
  const Value x = c.in(0);
  const Shape wanted = shapeOf(c.has(1) ? c.constantInts(1) : intsArg(c, "shape"));
  c.out(c.b.expand(x, {.shape = orFail(broadcastShapes(x.shape(), wanted)).dims()}));
}

}  // namespace

std::span<const OpRow> shapeRows() {
  static constexpr OpRow rows[] = {
      row("Concat", concat),
      row("DepthConcat", concat),
      row("Append", append),
      row("Split", split),
      row("DepthSplit", split),
      row("Reshape", reshape),
      row("Int8Reshape", reshape),
      row("Flatten", flatten),
      row("Int8Flatten", flatten),
      row("FlattenToVec", flattenToVec),
      row("ExpandDims", expandDims),
      row("Squeeze", squeeze),
      row("PrependDim", prependDim),
      row("MergeDim", mergeDim),
      row("ResizeLike", resizeLike),
      row("Transpose", transpose),
      row("Int8Transpose", transpose),
      row("Slice", slice),
      row("Int8Slice", slice),
      row("Shape", shape),
      row("Size", size),
      row("Tile", tile),
      row("NumpyTile", numpyTile),
      row("Expand", expand),
  };
  return rows;
}

}  // namespace aglow::caffe2
