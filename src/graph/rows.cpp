#include "graph/rows.h"

#include <algorithm>

namespace aglow {

namespace {

struct RowContext {
  const Attrs& attrs;
  const Type& in;
  const Type& out;
  size_t operand;
};
using RowRule = bool(const RowContext&);

bool always(const RowContext&) { return true; }
// The left matrices, whose rows are the first axis or matrices of a batch; of the right ones only those of a batch.
bool product(const RowContext& c) { return c.in.rank() == c.out.rank() && (c.operand == 0 || c.out.rank() > 2); }
bool leftOfProduct(const RowContext& c) { return c.in.rank() == c.out.rank() && c.operand == 0; }
bool batchOfProduct(const RowContext& c) { return c.in.rank() == c.out.rank() && c.out.rank() > 2; }
// The first axis is the batch.
bool images(const RowContext& c) { return c.operand == 0; }

bool allOf(const RowContext& c) {
  const std::vector<int64_t>&starts = c.attrs.ints("starts"), &steps = c.attrs.ints("steps");
  return starts[0] == 0 && (steps.empty() || steps[0] == 1);
}
bool otherAxis(const RowContext& c) { return c.attrs.integer("axis") != 0; }
bool otherAxes(const RowContext& c) {
  const std::vector<int64_t>& axes = c.attrs.ints("axes");
  return std::find(axes.begin(), axes.end(), 0) == axes.end();
}
bool stays(const RowContext& c) { return c.attrs.ints("perm")[0] == 0; }
bool unpadded(const RowContext& c) {
  return c.operand == 0 && c.attrs.ints("before")[0] == 0 && c.attrs.ints("after")[0] == 0;
}

struct Row {
  Op op;
  RowRule* rule;
};
// Operators that go by elements need no row here.
constexpr Row kRows[] = {
    {Op::MatMul, product},
    {Op::PackedMatMul, leftOfProduct},
    {Op::NarrowMatMul, leftOfProduct},
    {Op::BlockMatMul, leftOfProduct},
    {Op::ByteMatMul, product},
    {Op::TransposedMatMul, batchOfProduct},
    {Op::Conv, images},
    {Op::BlockedConv, images},
    {Op::ChannelsLastConv, images},
    {Op::WinogradConv, images},
    {Op::DepthwiseConv, images},
    {Op::NarrowConv, images},
    {Op::ByteConv, images},
    {Op::ByteDepthwiseConv, images},
    {Op::MaxPool, images},
    {Op::AvgPool, images},
    {Op::Reshape, always},
    {Op::Transpose, stays},
    {Op::Slice, allOf},
    {Op::Concat, otherAxis},
    {Op::Pad, unpadded},
    {Op::Reduce, otherAxes},
};

}  // namespace

bool readsByRow(const Attrs& attrs, std::span<const Type* const> in, const Type& out, size_t operand) {
  const Type* type = operand < in.size() ? in[operand] : nullptr;
  if (type == nullptr || type->rank() == 0 || out.rank() == 0 || type->dim(0) != out.dim(0)) return false;
  if (attrs.op().isDataParallel()) return type->rank() == out.rank();
  const Op op = opOf(attrs.op());
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.op == op; });
  return row != std::end(kRows) && row->rule({attrs, *type, out, operand});
}

}  // namespace aglow
