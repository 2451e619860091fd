// Type rules of the target operators on blocked channels and packed weights.
#include <fmt/format.h>

#include "ops/type_rules.h"
#include "ops/type_rules_support.h"
#include "ops/window.h"
#include "support/sizes.h"

namespace aglow::infer {

namespace {

int64_t quotientUp(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

Status checkRankIs(const InferContext& c, int operand, int rank) {
  if (c.type(operand).rank() == rank) return {};
  return badNode(
      fmt::format("expected '{}' to have {} axes, got {}", c.op.in[operand].name, rank, c.type(operand).text()));
}

// Positive, and small enough that sums and products with extents fit.
Status checkCount(const InferContext& c, std::string_view name) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const int64_t count = c.attrs.integer(name);
  if (count >= 1 && count <= kMost) return {};
  return badNode(fmt::format("expected '{}' from 1 to {}, got {}", name, kMost, count));
}

Status checkLanes(const InferContext& c) {
  AGLOW_OK(checkCount(c, "lanes"));
  const Type& x = c.type(0);
  if (x.rank() != 5 || x.dim(4) == c.attrs.integer("lanes")) return {};
  return badNode(fmt::format("expected {} for 'lanes' as in {}, got {}", x.dim(4), x.text(), c.attrs.integer("lanes")));
}

// So many channels in the blocks of x.
Status checkBlocks(const InferContext& c, int64_t channels) {
  const Type& x = c.type(0);
  const int64_t blocks = quotientUp(channels, x.dim(4));
  if (x.dim(1) == blocks) return {};
  return badNode(fmt::format("expected {} blocks of {} channels in 'x' for filter {}, got {}", blocks, channels,
                             c.type(1).text(), x.text()));
}

// x with blocks [batch, block, height, width] under a window; the result has `outputs` channels in blocks of `lanes`.
Types windowed(const InferContext& c, const Window& window, int64_t outputs, int64_t lanes) {
  const Type& x = c.type(0);
  AGLOW_TRY(const std::vector<int64_t> extents, wholeWindows(window, x.shape()));
  AGLOW_TRY(Shape shape, computedShape({x.dim(0), quotientUp(outputs, lanes), extents.at(0), extents.at(1), lanes}));
  return std::vector{x.withShape(std::move(shape))};
}

// What products of narrow elements come to, and how many of them are multiplied together.
struct Narrow {
  ElemKind sum;
  int64_t together;
};

Result<Narrow> narrowOf(const InferContext& c) {
  const ElemKind x = c.type(0).kind(), weights = c.type(1).kind();
  if (x == ElemKind::UInt8 && weights == ElemKind::Int8) return Narrow{ElemKind::Int32, 4};
  if (x == ElemKind::BFloat16 && weights == x) return Narrow{ElemKind::Float32, 2};
  return badNode(fmt::format("expected u8 by i8 or bf16 by bf16, got {} by {}", elemName(x), elemName(weights)));
}

// [..., k] by panels, of elements that are multiplied together; a row of results of `kind`.
Types product(const InferContext& c, int64_t k, ElemKind kind, int64_t together = 1) {
  const Type& a = c.type(0);
  const int64_t n = c.attrs.integer("n");
  const int64_t panel = c.type(1).dim(2);
  if (panel < 1) return badNode(fmt::format("expected panels with columns, got {}", c.type(1).text()));
  std::vector<int64_t> expected{quotientUp(n, panel), k, panel};
  if (c.type(1).rank() == 4) expected.push_back(together);
  AGLOW_OK(checkShape(c, 1, Shape(expected)));
  std::vector<int64_t> dims = a.shape().dims();
  dims.back() = n;
  AGLOW_TRY(Shape shape, computedShape(std::move(dims)));
  return std::vector{Type(kind, std::move(shape))};
}

// Groups that read and give whole blocks and panels.
Status checkGroups(const InferContext& c, int64_t depth) {
  const int64_t lanes = c.attrs.integer("lanes"), outputs = c.attrs.integer("outputs");
  const int64_t group = c.attrs.integer("group"), panel = 2 * lanes;
  if (group == 1 || (outputs % group == 0 && outputs / group % panel == 0 && depth % lanes == 0)) return {};
  return badNode(
      fmt::format("expected groups of whole blocks of {} and whole panels of {}, got {} and {} in {} "
                  "groups",
                  lanes, panel, depth * group, outputs, group));
}

}  // namespace

Types packedMatMul(const InferContext& c) {
  AGLOW_OK(checkRank(c, 0, 2));
  AGLOW_OK(checkRankIs(c, 1, 3));
  AGLOW_OK(checkCount(c, "n"));
  const Type& a = c.type(0);
  return product(c, a.dim(a.rank() - 1), a.kind());
}

Types narrowMatMul(const InferContext& c) {
  AGLOW_OK(checkRank(c, 0, 2));
  AGLOW_OK(checkRankIs(c, 1, 4));
  AGLOW_OK(checkCount(c, "n"));
  AGLOW_TRY(const Narrow narrow, narrowOf(c));
  const Type& a = c.type(0);
  return product(c, quotientUp(a.dim(a.rank() - 1), narrow.together), narrow.sum, narrow.together);
}

Types byteMatMul(const InferContext& c) {
  for (int i = 0; i < 2; ++i) AGLOW_OK(checkRank(c, i, 2));
  for (const std::string_view name : {"a_offset", "b_offset"}) AGLOW_OK(checkByteOffset(c, name));
  const Type &a = c.type(0), &b = c.type(1);
  const bool transposed = c.attrs.flag("transposed");
  const int64_t k = b.dim(b.rank() - (transposed ? 1 : 2)), n = b.dim(b.rank() - (transposed ? 2 : 1));
  if (a.dim(a.rank() - 1) != k)
    return badNode(fmt::format("expected [..., m, k] and [..., {}], got {} and {}", transposed ? "n, k" : "k, n",
                               a.text(), b.text()));
  const auto leading = [](const Type& t) {
    return Shape(std::vector(t.shape().dims().begin(), t.shape().dims().end() - 2));
  };
  AGLOW_TRY(const Shape batch, broadcastBoth(leading(a), leading(b)));
  std::vector<int64_t> dims = batch.dims();
  dims.insert(dims.end(), {a.dim(a.rank() - 2), n});
  AGLOW_TRY(Shape shape, computedShape(std::move(dims)));
  return std::vector{Type(ElemKind::Int32, std::move(shape))};
}

Types byteConv(const InferContext& c) {
  for (const std::string_view name : {"x_offset", "filter_offset"}) AGLOW_OK(checkByteOffset(c, name));
  AGLOW_TRY(std::vector<Type> types, conv(c));
  return std::vector{types.front().withKind(ElemKind::Int32)};
}

Types blockMatMul(const InferContext& c) {
  constexpr int64_t kWord = 32, kWordBytes = 4;
  AGLOW_OK(checkRank(c, 0, 2));
  AGLOW_OK(checkRankIs(c, 1, 4));
  AGLOW_OK(checkRankIs(c, 2, 3));
  for (const std::string_view name : {"n", "block"}) AGLOW_OK(checkCount(c, name));
  const int64_t bits = c.attrs.integer("bits"), block = c.attrs.integer("block"), n = c.attrs.integer("n");
  if (bits != 4 && bits != 8) return badNode(fmt::format("expected 'bits' to be 4 or 8, got {}", bits));
  const int64_t together = kWord / bits, panel = c.type(1).dim(2);
  if (block % together != 0)
    return badNode(fmt::format("expected blocks of whole words of {} rows, got {}", together, block));
  if (panel < 1) return badNode(fmt::format("expected panels with columns, got {}", c.type(1).text()));
  const Type& a = c.type(0);
  const int64_t k = a.dim(a.rank() - 1);
  AGLOW_OK(checkShape(c, 1, Shape{quotientUp(n, panel), quotientUp(k, together), panel, kWordBytes}));
  const Shape blocks{quotientUp(n, panel), quotientUp(k, block), panel};
  AGLOW_OK(checkShape(c, 2, blocks));
  if (c.type(3).elements() != 1) AGLOW_OK(checkShape(c, 3, blocks));
  std::vector<int64_t> dims = a.shape().dims();
  dims.back() = n;
  AGLOW_TRY(Shape shape, computedShape(std::move(dims)));
  return std::vector{a.withShape(std::move(shape))};
}

Types transposedMatMul(const InferContext& c) {
  AGLOW_OK(checkRank(c, 0, 2));
  const Type &a = c.type(0), &b = c.type(1);
  std::vector<int64_t> left = a.shape().dims(), expected = left;
  if (b.rank() == a.rank()) expected.back() = b.dim(b.rank() - 1);
  AGLOW_OK(checkShape(c, 1, Shape(expected)));
  left[left.size() - 2] = left.back();
  left.back() = expected.back();
  AGLOW_TRY(Shape shape, computedShape(std::move(left)));
  return std::vector{a.withShape(std::move(shape))};
}

Types tapProducts(const InferContext& c) {
  const Type &x = c.type(0), &g = c.type(1);
  if (x.rank() != 4) AGLOW_OK(checkRankIs(c, 0, 5));
  AGLOW_OK(checkRankIs(c, 1, 5));
  AGLOW_OK(checkCount(c, "channels"));
  const int64_t channels = c.attrs.integer("channels"), lanes = g.dim(4);
  if (lanes < 1 || (x.rank() == 5 && x.dim(4) != lanes))
    return badNode(fmt::format("expected the same blocks with channels, got {} and {}", x.text(), g.text()));
  if (x.dim(1) != (x.rank() == 4 ? channels : quotientUp(channels, lanes)))
    return badNode(fmt::format("expected {} channels in 'x', got {}", channels, x.text()));
  const std::vector<int64_t>& kernel = c.attrs.ints("kernel");
  if (kernel.size() != 2) return badNode(fmt::format("expected 2 extents of 'kernel', got {}", kernel.size()));
  AGLOW_TRY(const Window window, windowOf(c.attrs, kernel));
  AGLOW_TRY(const std::vector<int64_t> extents, wholeWindows(window, x.shape()));
  if (g.dim(0) != x.dim(0) || g.dim(2) > extents.at(0) || g.dim(3) > extents.at(1))
    return badNode(fmt::format("expected {} images of at most {} by {} windows, got {}", x.dim(0), extents.at(0),
                               extents.at(1), g.text()));
  AGLOW_TRY(Shape shape, computedShape({quotientUp(g.dim(1), 2), kernel.at(0), kernel.at(1), channels, 2 * lanes}));
  return std::vector{x.withShape(std::move(shape))};
}

Types blockedConv(const InferContext& c) {
  const Type& x = c.type(0);
  const Type& filter = c.type(1);
  const bool planar = x.rank() == 4;
  if (!planar) AGLOW_OK(checkRankIs(c, 0, 5));
  AGLOW_OK(checkRankIs(c, 1, 5));
  AGLOW_OK(checkLanes(c));
  AGLOW_OK(checkCount(c, "outputs"));
  AGLOW_OK(checkCount(c, "group"));
  const int64_t lanes = c.attrs.integer("lanes");
  const int64_t outputs = c.attrs.integer("outputs");
  const int64_t group = c.attrs.integer("group");
  const int64_t panel = 2 * lanes;
  AGLOW_TRY(const Shape expected,
            computedShape({quotientUp(outputs, panel), filter.dim(1), filter.dim(2), filter.dim(3), panel}));
  AGLOW_OK(checkShape(c, 1, expected));
  const auto channels = checkedMul(filter.dim(3), group);
  if (!channels) return badNode(fmt::format("filter {} in {} groups reads too many channels", filter.text(), group));
  if (planar && (group > 1 || x.dim(1) != *channels))
    return badNode(fmt::format("expected {} channels in planar 'x' and one group for filter {}, got {} and {} groups",
                               *channels, filter.text(), x.text(), group));
  AGLOW_OK(checkGroups(c, filter.dim(3)));
  if (!planar) AGLOW_OK(checkBlocks(c, *channels));
  AGLOW_TRY(const Window window, windowOf(c.attrs, {filter.dim(1), filter.dim(2)}));
  return windowed(c, window, outputs, lanes);
}

Types channelsLastConv(const InferContext& c) {
  const Type &x = c.type(0), &filter = c.type(1);
  const bool planar = x.rank() == 4;
  if (!planar) AGLOW_OK(checkRankIs(c, 0, 5));
  AGLOW_OK(checkRankIs(c, 1, 4));
  if (filter.dim(0) < 1) return badNode(fmt::format("expected a filter with outputs, got {}", filter.text()));
  const int64_t channels = filter.dim(3);
  if (planar ? x.dim(1) != channels : x.dim(1) != 1 || x.dim(4) != channels)
    return badNode(fmt::format("expected 'x' with {} channels in one block, or planar, got {}", channels, x.text()));
  if (c.has(2)) AGLOW_OK(checkShape(c, 2, Shape{filter.dim(0)}));
  AGLOW_TRY(const Window window, windowOf(c.attrs, {filter.dim(1), filter.dim(2)}));
  return windowed(c, window, filter.dim(0), filter.dim(0));
}

static Status checkOutside(const InferContext& c) {
  const int64_t outside = c.attrs.integer("outside"), most = c.type(0).kind() == ElemKind::UInt8 ? UINT8_MAX : 0;
  if (outside >= 0 && outside <= most) return {};
  return badNode(fmt::format("expected 'outside' from 0 to {}, got {}", most, outside));
}

Types byteDepthwiseConv(const InferContext& c) {
  AGLOW_OK(checkRankIs(c, 0, 5));
  AGLOW_OK(checkRankIs(c, 1, 4));
  AGLOW_OK(checkOutside(c));
  const Type& x = c.type(0);
  const Type& filter = c.type(1);
  if (x.dim(4) < 1) return badNode(fmt::format("expected blocks with channels, got {}", x.text()));
  AGLOW_OK(checkShape(c, 1, Shape{x.dim(1), filter.dim(1), filter.dim(2), x.dim(4)}));
  AGLOW_TRY(const Window window, windowOf(c.attrs, {filter.dim(1), filter.dim(2)}));
  AGLOW_TRY(std::vector<Type> types, windowed(c, window, x.dim(1) * x.dim(4), x.dim(4)));
  return std::vector{types.front().withKind(ElemKind::Int32)};
}

Types narrowConv(const InferContext& c) {
  const Type& x = c.type(0);
  const Type& filter = c.type(1);
  AGLOW_OK(checkRankIs(c, 0, 5));
  AGLOW_OK(checkRankIs(c, 1, 6));
  AGLOW_OK(checkCount(c, "lanes"));
  AGLOW_OK(checkCount(c, "outputs"));
  AGLOW_OK(checkCount(c, "group"));
  const int64_t lanes = c.attrs.integer("lanes");
  const int64_t outputs = c.attrs.integer("outputs");
  const int64_t group = c.attrs.integer("group");
  AGLOW_OK(checkOutside(c));
  AGLOW_TRY(const Narrow narrow, narrowOf(c));
  const int64_t together = narrow.together;
  if (lanes % together != 0 || (x.dim(4) != lanes && x.dim(4) != together))
    return badNode(fmt::format("expected blocks of {} or {} channels, with whole groups of {}, got {}", lanes, together,
                               together, x.text()));
  AGLOW_TRY(const Shape expected, computedShape({quotientUp(outputs, 2 * lanes), filter.dim(1), filter.dim(2),
                                                 filter.dim(3), 2 * lanes, together}));
  AGLOW_OK(checkShape(c, 1, expected));
  const auto depth = checkedMul(filter.dim(3), together), channels = depth ? checkedMul(*depth, group) : std::nullopt;
  if (!channels) return badNode(fmt::format("filter {} in {} groups reads too many channels", filter.text(), group));
  AGLOW_OK(checkGroups(c, *depth));
  AGLOW_OK(checkBlocks(c, *channels));
  AGLOW_TRY(const Window window, windowOf(c.attrs, {filter.dim(1), filter.dim(2)}));
  AGLOW_TRY(std::vector<Type> types, windowed(c, window, outputs, lanes));
  return std::vector{types.front().withKind(narrow.sum)};
}

Types winogradConv(const InferContext& c) {
  const bool planar = c.type(0).rank() == 4;
  AGLOW_OK(checkRankIs(c, 1, 4));
  AGLOW_OK(checkCount(c, "outputs"));
  if (!planar) {
    AGLOW_OK(checkRankIs(c, 0, 5));
    AGLOW_OK(checkLanes(c));
  }
  const int64_t tile = c.attrs.integer("tile");
  const int64_t lanes = c.attrs.integer("lanes");
  const int64_t outputs = c.attrs.integer("outputs");
  if (tile != 2 && tile != 4) return badNode(fmt::format("expected 'tile' to be 2 or 4, got {}", tile));
  if (planar && lanes != 0) return badNode(fmt::format("expected 0 for 'lanes' of planar 'x', got {}", lanes));
  const int64_t panel = planar ? outputs : 2 * lanes, channels = c.type(1).dim(2);
  AGLOW_TRY(const Shape expected,
            computedShape({(tile + 2) * (tile + 2), quotientUp(outputs, panel), channels, panel}));
  AGLOW_OK(checkShape(c, 1, expected));
  AGLOW_TRY(const Window window, windowOf(c.attrs, {3, 3}));
  if (!planar) {
    AGLOW_OK(checkBlocks(c, channels));
    return windowed(c, window, outputs, lanes);
  }
  const Type& x = c.type(0);
  if (x.dim(1) != channels)
    return badNode(
        fmt::format("expected {} channels in 'x' for filter {}, got {}", channels, c.type(1).text(), x.text()));
  AGLOW_TRY(const std::vector<int64_t> extents, wholeWindows(window, x.shape()));
  AGLOW_TRY(Shape shape, computedShape({x.dim(0), outputs, extents.at(0), extents.at(1)}));
  return std::vector{x.withShape(std::move(shape))};
}

Types depthwiseConv(const InferContext& c) {
  AGLOW_OK(checkRankIs(c, 0, 5));
  AGLOW_OK(checkRankIs(c, 1, 5));
  const Type& x = c.type(0);
  const Type& filter = c.type(1);
  if (x.dim(4) < 1) return badNode(fmt::format("expected blocks with channels, got {}", x.text()));
  AGLOW_OK(checkShape(c, 1, Shape{x.dim(1), filter.dim(1), filter.dim(2), filter.dim(3), x.dim(4)}));
  if (filter.dim(3) < 1 || x.dim(4) % filter.dim(3) != 0)
    return badNode(
        fmt::format("expected groups that fill blocks of {} channels, got groups of {}", x.dim(4), filter.dim(3)));
  AGLOW_TRY(const Window window, windowOf(c.attrs, {filter.dim(1), filter.dim(2)}));
  return windowed(c, window, x.dim(1) * x.dim(4), x.dim(4));
}

}  // namespace aglow::infer
