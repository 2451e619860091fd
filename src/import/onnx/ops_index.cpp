// Operators that read and write at computed places, and those whose result's extent depends on values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"
#include "tensor/convert.h"

namespace aglow::onnx {

namespace {

void gather(OpImport& c) {
  c.out(c.b.gather(c.in(0), c.in(1), {.axis = c.axis(c.integer("axis", 0), c.in(0).rank())}));
}

void scatter(OpImport& c) {
  const int64_t axis = c.axis(c.integer("axis", 0), c.in(0).rank());
  c.out(c.b.scatterElements(c.in(0), c.in(1), c.in(2), {.axis = axis}));
}

// Rows of a cache replaced from a place of its own in each item of the batch on.
void tensorScatter(OpImport& c) {
  const Value cache = c.in(0), update = c.in(1);
  const int rank = cache.rank();
  const int64_t axis = c.axis(c.integer("axis", -2), rank);
  const std::string mode = c.word("mode", "linear");
  if (mode != "linear" && mode != "circular")
    fail(Code::BadNode, fmt::format("expected 'mode' linear or circular, got '{}'", mode));
  bool fits = axis > 0 && update.rank() == rank;
  for (int a = 0; fits && a < rank; ++a)
    fits = a == axis ? update.dim(a) <= cache.dim(a) : update.dim(a) == cache.dim(a);
  if (!fits)
    fail(Code::BadNode, fmt::format("expected an 'update' that fits into {} along axis {}, got {}", cache.type().text(),
                                    axis, update.type().text()));
  Value place = iota(c.b, update.dim(static_cast<int>(axis)), axis, rank);
  if (c.has(2)) {
    const Value start = c.b.casted(c.in(2), ElemKind::Int64);
    if (start.shape() != Shape{cache.dim(0)})
      fail(Code::BadNode, fmt::format("expected {} 'write_indices', got {}", cache.dim(0), start.type().text()));
    place = c.b.add(place, alongAxis(c.b, start, 0, rank));
  }
  if (mode == "circular")
    place = c.b.mod(place, c.b.scalar(ElemKind::Int64, static_cast<double>(cache.dim(static_cast<int>(axis)))));
  const Value indices = c.b.expand(place, {.shape = update.shape().dims()});
  c.out(c.b.scatterElements(cache, indices, update, {.axis = axis}));
}

void compress(OpImport& c) {
  Value x = c.in(0);
  int64_t axis = 0;
  if (c.hasAttr("axis"))
    axis = c.axis(c.integer("axis"), x.rank());
  else
    x = c.b.reshaped(x, {x.type().elements()});
  const std::vector<int64_t> condition = c.constantInts(1);
  if (c.in(1).rank() != 1 || static_cast<int64_t>(condition.size()) > x.dim(static_cast<int>(axis)))
    fail(Code::BadNode, fmt::format("expected a 'condition' no longer than axis {} of {}, got {}", axis,
                                    x.type().text(), c.in(1).type().text()));
  std::vector<int64_t> kept;
  for (size_t i = 0; i < condition.size(); ++i)
    if (condition[i] != 0) kept.push_back(static_cast<int64_t>(i));
  c.out(c.b.gather(x, c.b.ints(kept), {.axis = axis}));
}

// 1 where one of the counted bits of an element is set.
template <class Bits>
void markNonZero(const std::byte* data, Bits counted, std::vector<uint8_t>& marks) {
  for (size_t i = 0; i < marks.size(); ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * sizeof(Bits), sizeof(Bits));
    marks[i] = (bits & counted) != 0 ? 1 : 0;
  }
}

// 1 where an element is not zero. A float's sign says nothing, but in kinds of 8 bits, some of which have no negative
// zero.
std::vector<uint8_t> nonZeroMarks(const Tensor& x) {
  const ElemKind kind = x.type().kind();
  std::vector<uint8_t> marks(static_cast<size_t>(x.type().elements()));
  const auto mark = [&]<class Bits>(Bits all) {
    markNonZero<Bits>(x.data(), isFloat(kind) ? static_cast<Bits>(all >> 1) : all, marks);
    return marks;
  };
  const int bits = elemInfo(kind).bits;
  if (bits == 64) return mark(std::numeric_limits<uint64_t>::max());
  if (bits == 32) return mark(std::numeric_limits<uint32_t>::max());
  if (bits == 16) return mark(std::numeric_limits<uint16_t>::max());
  if (kind == ElemKind::Bool || kind == ElemKind::UInt8 || kind == ElemKind::Int8)
    return mark(std::numeric_limits<uint8_t>::max());
  const std::vector<double> values = x.doubles();
  std::transform(values.begin(), values.end(), marks.begin(), [](double value) { return value != 0 ? 1 : 0; });
  return marks;
}

// One row of coordinates for each axis.
void nonZero(OpImport& c) {
  const Tensor x = c.constant(0);
  const Shape& shape = x.type().shape();
  const std::vector<uint8_t> marks = nonZeroMarks(x);
  const int64_t count = std::accumulate(marks.begin(), marks.end(), int64_t{0});
  Tensor found(Type(ElemKind::Int64, Shape{shape.rank(), count}));
  auto* coordinates = reinterpret_cast<int64_t*>(found.mutableData());
  // Line by line of the last axis: places along it are written without a branch, and the other coordinates stay.
  const int last = shape.rank() - 1;
  const auto extent = static_cast<size_t>(last < 0 ? 1 : shape[last]);
  std::vector<int64_t> at(static_cast<size_t>(std::max(last, 0)), 0), places(extent + 1);
  int64_t done = 0;
  for (size_t line = 0; line < marks.size(); line += extent) {
    size_t some = 0;
    for (size_t i = 0; i < extent; ++i) {
      places[some] = static_cast<int64_t>(i);
      some += marks[line + i];
    }
    for (int axis = 0; axis < last; ++axis)
      std::fill_n(coordinates + axis * count + done, some, at[static_cast<size_t>(axis)]);
    if (last >= 0) std::copy_n(places.begin(), some, coordinates + last * count + done);
    done += static_cast<int64_t>(some);
    for (int axis = last - 1; axis >= 0; --axis) {
      if (++at[static_cast<size_t>(axis)] < shape[axis]) break;
      at[static_cast<size_t>(axis)] = 0;
    }
  }
  c.out(c.b.constant(std::move(found)));
}

// Rows of values in ascending order; NaN is larger than all others and equal to itself.
template <class D>
struct Rows {
  std::vector<D> values;
  size_t length;

  static int compareValues(D a, D b) {
    if constexpr (std::is_floating_point_v<D>)
      if (std::isnan(a) || std::isnan(b)) return static_cast<int>(std::isnan(a)) - static_cast<int>(std::isnan(b));
    return a < b ? -1 : a == b ? 0 : 1;
  }
  int compare(int64_t a, int64_t b) const {
    for (size_t i = 0; i < length; ++i)
      if (const int order =
              compareValues(values[static_cast<size_t>(a) * length + i], values[static_cast<size_t>(b) * length + i]))
        return order;
    return 0;
  }
};

// The first row of each group of equal ones, the group of every row, and how many rows each has.
struct Groups {
  std::vector<int64_t> firsts, groupOf, counts;
};

template <class D>
Groups grouped(const Rows<D>& rows, int64_t count, bool sorted) {
  std::vector<int64_t> order = range(0, count);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int difference = rows.compare(a, b);
    return difference != 0 ? difference < 0 : a < b;
  });
  Groups groups;
  groups.groupOf.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || rows.compare(order[i - 1], order[i]) != 0) {
      groups.firsts.push_back(order[i]);
      groups.counts.push_back(0);
    }
    ++groups.counts.back();
    groups.groupOf[static_cast<size_t>(order[i])] = static_cast<int64_t>(groups.firsts.size()) - 1;
  }
  if (sorted) return groups;
  std::vector<int64_t> byFirst = range(0, static_cast<int64_t>(groups.firsts.size()));
  std::sort(byFirst.begin(), byFirst.end(), [&](int64_t a, int64_t b) {
    return groups.firsts[static_cast<size_t>(a)] < groups.firsts[static_cast<size_t>(b)];
  });
  Groups result = groups;
  std::vector<int64_t> renamed(byFirst.size());
  for (size_t i = 0; i < byFirst.size(); ++i) {
    const auto old = static_cast<size_t>(byFirst[i]);
    result.firsts[i] = groups.firsts[old];
    result.counts[i] = groups.counts[old];
    renamed[old] = static_cast<int64_t>(i);
  }
  for (int64_t& group : result.groupOf) group = renamed[static_cast<size_t>(group)];
  return result;
}

void unique(OpImport& c) {
  Value x = c.in(0);
  const int64_t axis = c.hasAttr("axis") ? c.axis(c.integer("axis"), x.rank()) : 0;
  if (!c.hasAttr("axis")) x = c.b.reshaped(x, {x.type().elements()});
  std::vector<int64_t> perm = range(0, x.rank());
  std::rotate(perm.begin(), perm.begin() + axis, perm.begin() + axis + 1);
  const Tensor rows = c.constant(c.b.transposed(x, perm));
  const int64_t count = rows.type().dim(0);
  const auto length = static_cast<size_t>(count == 0 ? 0 : rows.type().elements() / count);
  const Groups groups = inDomain(domainOf(x.kind()), [&](auto zero) {
    using D = decltype(zero);
    return grouped(Rows<D>{widened<D>(rows.ref()), length}, count, c.flag("sorted", true));
  });
  c.out(0, c.b.gather(x, c.b.ints(groups.firsts), {.axis = axis}));
  const std::vector<int64_t>* further[] = {&groups.firsts, &groups.groupOf, &groups.counts};
  for (int i = 0; i < 3; ++i)
    if (c.wants(i + 1)) c.out(i + 1, c.b.ints(*further[i]));
}

}  // namespace

std::span<const OpRow> indexRows() {
  static constexpr OpRow rows[] = {
      {"Gather", gather},
      {"Scatter", scatter},
      {"TensorScatter", tensorScatter},
      alone({"Compress", compress}),
      alone({"NonZero", nonZero}),
      alone({"Unique", unique}),
  };
  return rows;
}

}  // namespace aglow::onnx
