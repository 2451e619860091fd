// Operators that move elements without computing on them.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"
#include "support/sizes.h"

namespace aglow::onnx {

namespace {

void reshape(OpImport& c) {
  const Value x = c.in(0);
  std::vector<int64_t> dims = c.constantInts(1);
  const bool keepZeros = c.flag("allowzero");
  int64_t known = 1;
  std::optional<size_t> open;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !keepZeros) {
      if (static_cast<int>(i) >= x.rank())
        fail(Code::BadNode,
             fmt::format("expected no 0 at place {} of the shape, got {} for {}", i, listText(dims), x.type().text()));
      dims[i] = x.dim(static_cast<int>(i));
    }
    if (dims[i] == -1) {
      if (open) fail(Code::BadNode, fmt::format("expected at most one -1 in the shape, got {}", listText(dims)));
      open = i;
    } else {
      const auto next = checkedMul(known, dims[i]);
      if (!next || dims[i] < 0)
        fail(Code::BadNode, fmt::format("expected extents in the shape, got {}", listText(dims)));
      known = *next;
    }
  }
  if (open) {
    if (known == 0 || x.type().elements() % known != 0)
      fail(Code::BadNode, fmt::format("expected a shape that divides {}, got {}", x.type().text(), listText(dims)));
    dims[*open] = x.type().elements() / known;
  }
  c.out(c.b.reshaped(x, dims));
}

void flatten(OpImport& c) {
  const Value x = c.in(0);
  int64_t axis = c.integer("axis", 1);
  if (axis < -x.rank() || axis > x.rank())
    fail(Code::BadNode, fmt::format("expected 'axis' from {} to {}, got {}", -x.rank(), x.rank(), axis));
  if (axis < 0) axis += x.rank();
  c.out(c.b.reshaped(x, {product(x.shape(), 0, axis), product(x.shape(), axis, x.rank())}));
}

void squeeze(OpImport& c) {
  const Value x = c.in(0);
  std::vector<int64_t> axes = c.intsFromInputOrAttr(1, "axes");
  const bool given = !axes.empty();
  for (int64_t& axis : axes) axis = c.axis(axis, x.rank());
  if (std::set<int64_t>(axes.begin(), axes.end()).size() != axes.size())
    c.depart(fmt::format("expected every axis once in 'axes', got {}", listText(axes)), "each is squeezed once");
  if (!given && (c.hasAttr("axes") || c.has(1)))
    c.depart("expected an axis in 'axes', got none", "all axes of extent 1 are squeezed, as without 'axes'");
  std::vector<int64_t> dims;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const bool named = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (named && x.dim(axis) != 1)
      fail(Code::BadNode, fmt::format("expected an extent of 1 along axis {}, got {}", axis, x.type().text()));
    if (given ? !named : x.dim(axis) != 1) dims.push_back(x.dim(axis));
  }
  c.out(c.b.reshaped(x, dims));
}

void unsqueeze(OpImport& c) {
  const Value x = c.in(0);
  const std::vector<int64_t> given = c.intsFromInputOrAttr(1, "axes");
  const std::vector<int64_t> axes = c.axes(given, x.rank() + static_cast<int64_t>(given.size()));
  std::vector<int64_t> dims = x.shape().dims();
  for (const int64_t axis : axes) dims.insert(dims.begin() + axis, 1);
  c.out(c.b.reshaped(x, dims));
}

void transpose(OpImport& c) {
  const Value x = c.in(0);
  std::vector<int64_t> perm = c.ints("perm");
  if (!c.hasAttr("perm")) {
    perm = range(0, x.rank());
    std::reverse(perm.begin(), perm.end());
  }
  c.out(c.b.transpose(x, {.perm = perm}));
}

void expand(OpImport& c) {
  const Value x = c.in(0);
  const Shape wanted = shapeOf(c.constantInts(1));
  const Shape common = orFail(broadcastShapes(x.shape(), wanted));
  c.out(common == x.shape() ? x : c.b.expand(x, {.shape = common.dims()}));
}

void tile(OpImport& c) {
  const Value x = c.in(0);
  const std::vector<int64_t> repeats = c.constantInts(1);
  if (static_cast<int>(repeats.size()) != x.rank())
    fail(Code::BadNode, fmt::format("expected one repeat an axis of {}, got {}", x.type().text(), listText(repeats)));
  std::vector<int64_t> single, many, joined;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int64_t repeat = repeats[static_cast<size_t>(axis)];
    const auto extent = checkedMul(repeat, x.dim(axis));
    if (repeat < 0 || !extent)
      fail(Code::BadNode, fmt::format("expected repeats of 0 or more, got {}", listText(repeats)));
    single.insert(single.end(), {1, x.dim(axis)});
    many.insert(many.end(), {repeat, x.dim(axis)});
    joined.push_back(*extent);
  }
  c.out(joined == x.shape().dims() ? x : c.b.reshaped(c.b.expand(c.b.reshaped(x, single), {.shape = many}), joined));
}

void concat(OpImport& c) {
  const std::vector<Value> all = c.all();
  if (all.empty()) fail(Code::BadNode, "expected at least one operand");
  const int64_t axis = c.axis(c.integer("axis"), all.front().rank());
  c.out(all.size() == 1 ? all.front() : c.b.concat(all, {.axis = axis}));
}

// The lengths of the pieces: given, or equal ones, of which only the last may be shorter and only from opset 18 on.
std::vector<int64_t> pieces(OpImport& c, int64_t extent) {
  const auto results = static_cast<int64_t>(c.node.outputs.size());
  if (c.hasAttr("split") || c.has(1)) return c.intsFromInputOrAttr(1, "split");
  const int64_t count = c.integer("num_outputs", results);
  if (count != results)
    fail(Code::BadNode, fmt::format("expected {} results as 'num_outputs' says, got {}", count, results));
  if (count == 0) return {};
  if (extent % count != 0 && c.version < 18)
    fail(Code::BadNode, fmt::format("expected an extent that divides into {} pieces, got {}", count, extent));
  std::vector<int64_t> lengths(static_cast<size_t>(count), ceilDiv(extent, count));
  lengths.back() = extent - lengths.front() * (count - 1);
  return lengths;
}

void split(OpImport& c) {
  const Value x = c.in(0);
  const int64_t axis = c.axis(c.integer("axis", 0), x.rank()), extent = x.dim(static_cast<int>(axis));
  const std::vector<int64_t> lengths = pieces(c, extent);
  std::optional<int64_t> sum = 0;
  for (const int64_t length : lengths) sum = sum && length >= 0 ? checkedAdd(*sum, length) : std::nullopt;
  if (sum != extent || lengths.size() != c.node.outputs.size())
    fail(Code::BadNode, fmt::format("expected {} lengths that add up to {}, got {}", c.node.outputs.size(), extent,
                                    listText(lengths)));
  int64_t start = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (c.wants(static_cast<int>(i))) c.out(static_cast<int>(i), sliced(c.b, x, axis, start, lengths[i]));
    start += lengths[i];
  }
}

void slice(OpImport& c) {
  const Value x = c.in(0);
  const bool attributes = c.version < 10;
  const auto list = [&](int operand, std::string_view name, std::vector<int64_t> otherwise) {
    if (attributes) return c.ints(name, std::move(otherwise));
    return c.has(operand) ? c.constantInts(operand) : std::move(otherwise);
  };
  const std::vector<int64_t> starts = list(1, "starts", {}), ends = list(2, "ends", {});
  const std::vector<int64_t> given = list(3, "axes", range(0, static_cast<int64_t>(starts.size())));
  const std::vector<int64_t> steps = list(4, "steps", std::vector<int64_t>(starts.size(), 1));
  if (ends.size() != starts.size() || given.size() != starts.size() || steps.size() != starts.size())
    fail(Code::BadNode, fmt::format("expected as many ends, axes and steps as starts, got {}, {}, {} and {}",
                                    ends.size(), given.size(), steps.size(), starts.size()));
  c.axes(given, x.rank());  // none twice
  SliceAttrs attrs{.starts = std::vector<int64_t>(static_cast<size_t>(x.rank()), 0), .sizes = x.shape().dims()};
  attrs.steps.assign(attrs.starts.size(), 1);
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = c.axis(given[i], x.rank()), extent = x.dim(static_cast<int>(axis));
    const int64_t step = std::max(steps[i], -std::numeric_limits<int64_t>::max());
    if (step == 0) fail(Code::BadNode, "expected steps other than 0");
    // Backwards, an end may lie before the first element, but a start may not.
    const int64_t high = step < 0 ? extent - 1 : extent;
    const auto place = [&](int64_t at, int64_t low) {
      return std::max(std::min(at < 0 ? at + extent : at, high), low);
    };
    const int64_t start = place(starts[i], 0), end = place(ends[i], step < 0 ? -1 : 0);
    const int64_t distance = step < 0 ? start - end : end - start,
                  stride = std::min(step < 0 ? -step : step, extent + 1);
    const int64_t count = extent == 0 ? 0 : std::max<int64_t>(ceilDiv(distance, stride), 0);
    const auto a = static_cast<size_t>(axis);
    attrs.starts[a] = count == 0 ? 0 : start;
    attrs.sizes[a] = count;
    attrs.steps[a] = step < 0 ? -stride : stride;
  }
  const bool whole = attrs.sizes == x.shape().dims() &&
                     std::all_of(attrs.steps.begin(), attrs.steps.end(), [](int64_t s) { return s > 0; });
  c.out(whole ? x : c.b.slice(x, attrs));
}

struct Blocks {
  Value x;
  int64_t block, batch, channels, height, width;
};

Blocks blocksOf(OpImport& c) {
  const Value x = c.in(0);
  const int64_t block = c.integer("blocksize");
  if (x.rank() != 4 || block < 1 || block > std::numeric_limits<int32_t>::max())
    fail(Code::BadNode,
         fmt::format("expected [batch, channel, height, width] and a positive 'blocksize', got {} and {}",
                     x.type().text(), block));
  return {x, block, x.dim(0), x.dim(1), x.dim(2), x.dim(3)};
}

void depthToSpace(OpImport& c) {
  const auto [x, block, batch, channels, height, width] = blocksOf(c);
  const std::string mode = c.word("mode", "DCR");
  if (channels % (block * block) != 0)
    fail(Code::BadNode, fmt::format("expected channels that divide by {}, got {}", block * block, x.type().text()));
  if (mode != "DCR" && mode != "CRD") fail(Code::BadNode, fmt::format("expected 'mode' DCR or CRD, got '{}'", mode));
  const int64_t depth = channels / (block * block);
  const bool depthLast = mode == "DCR";
  const Value split = depthLast ? c.b.reshape(x, {.shape = {batch, block, block, depth, height, width}})
                                : c.b.reshape(x, {.shape = {batch, depth, block, block, height, width}});
  const Value moved = depthLast ? c.b.transpose(split, {.perm = {0, 3, 4, 1, 5, 2}})
                                : c.b.transpose(split, {.perm = {0, 1, 4, 2, 5, 3}});
  c.out(c.b.reshape(moved, {.shape = {batch, depth, height * block, width * block}}));
}

void spaceToDepth(OpImport& c) {
  const auto [x, block, batch, channels, height, width] = blocksOf(c);
  const std::string mode = c.word("mode", "DCR");
  if (height % block != 0 || width % block != 0)
    fail(Code::BadNode, fmt::format("expected height and width that divide by {}, got {}", block, x.type().text()));
  if (mode != "DCR" && mode != "CRD") fail(Code::BadNode, fmt::format("expected 'mode' DCR or CRD, got '{}'", mode));
  const int64_t rows = height / block, columns = width / block;
  const Value split = c.b.reshape(x, {.shape = {batch, channels, rows, block, columns, block}});
  const std::vector<int64_t> perm =
      mode == "DCR" ? std::vector<int64_t>{0, 3, 5, 1, 2, 4} : std::vector<int64_t>{0, 1, 3, 5, 2, 4};
  c.out(c.b.reshape(c.b.transpose(split, {.perm = perm}), {.shape = {batch, channels * block * block, rows, columns}}));
}

}  // namespace

std::span<const OpRow> shapeRows() {
  static constexpr OpRow rows[] = {
      {"Reshape", reshape, 5},  {"Flatten", flatten},           {"Squeeze", squeeze},
      {"Unsqueeze", unsqueeze}, {"Transpose", transpose},       {"Expand", expand},
      {"Tile", tile, 6},        {"Concat", concat, 4},          {"Split", split},
      alone({"Slice", slice}),  {"DepthToSpace", depthToSpace}, {"SpaceToDepth", spaceToDepth},
  };
  return rows;
}

}  // namespace aglow::onnx
