// Type rules of operators between real and quantized values. Wrong scales and offsets are BadQuantization.
#include <fmt/format.h>

#include <limits>

#include "ops/observed.h"
#include "ops/type_rules.h"
#include "ops/type_rules_support.h"
#include "support/sizes.h"

namespace aglow::infer {

namespace {

// The quantized type that the attributes to, scales, offsets and axis describe.
Types quantizedAs(const InferContext& c) {
  QuantParams params;
  const int64_t axis = c.attrs.integer("axis");
  if (axis != -1) AGLOW_OK(checkAxis("axis", axis, c.type(0).shape()));
  params.axis = static_cast<int>(axis);
  for (const double scale : c.attrs.reals("scales")) params.scales.push_back(static_cast<float>(scale));
  for (const int64_t offset : c.attrs.ints("offsets")) {
    if (offset < std::numeric_limits<int32_t>::min() || offset > std::numeric_limits<int32_t>::max())
      return badQuantization(fmt::format("expected offsets of 32 bits, got {}", offset));
    params.offsets.push_back(static_cast<int32_t>(offset));
  }
  AGLOW_TRY(Type type, Type::quantized(c.attrs.elem("to"), c.type(0).shape(), std::move(params)));
  return std::vector{std::move(type)};
}

Status checkFloat(ElemKind to) {
  if (isFloat(to)) return {};
  return badNode(fmt::format("expected 'to' to be a float kind, got {}", elemName(to)));
}

// One scale, one an index of axis, or one a block along it; offsets like scales.
Status checkScales(const InferContext& c) {
  const Type& x = c.type(0);
  const Type& scale = c.type(1);
  const int64_t axis = c.attrs.integer("axis");
  const int64_t block = c.attrs.integer("block_size");
  if (block < 0) return badQuantization(fmt::format("expected 'block_size' to be 0 or more, got {}", block));
  Shape expected;
  if (block > 0) {
    AGLOW_OK(checkAxis("axis", axis, x.shape()));
    std::vector<int64_t> dims = x.shape().dims();
    int64_t& extent = dims[static_cast<size_t>(axis)];
    extent = ceilDiv(extent, block);
    expected = Shape(std::move(dims));
  } else if (scale.rank() > 0 && scale.shape() != Shape{1}) {
    AGLOW_OK(checkAxis("axis", axis, x.shape()));
    expected = Shape{x.dim(static_cast<int>(axis))};
  } else {
    expected = scale.shape();
  }
  if (scale.shape() != expected)
    return badQuantization(fmt::format("expected shape {} of 'scale' for {} along axis {}, got {}", expected.text(),
                                       x.text(), axis, scale.text()));
  if (c.has(2) && c.type(2).shape() != expected)
    return badQuantization(
        fmt::format("expected shape {} of 'offset' as of 'scale', got {}", expected.text(), c.type(2).text()));
  return {};
}

}  // namespace

Types quantize(const InferContext& c) { return quantizedAs(c); }

Types dequantize(const InferContext& c) {
  const ElemKind to = c.attrs.elem("to");
  AGLOW_OK(checkFloat(to));
  if (c.type(0).quant().scales.empty())
    return badQuantization(fmt::format("expected scales in the type of 'x', got {}", c.type(0).text()));
  return std::vector{c.type(0).withKind(to)};
}

Types rescale(const InferContext& c) {
  if (c.type(0).quant().scales.empty())
    return badQuantization(fmt::format("expected scales in the type of 'x', got {}", c.type(0).text()));
  return quantizedAs(c);
}

Types quantizeLinear(const InferContext& c) {
  AGLOW_OK(checkScales(c));
  const ElemKind to = c.has(2) ? c.type(2).kind() : c.attrs.elem("to");
  if (!isFloat(to) && !isInteger(to))
    return badNode(fmt::format("expected a float or integer kind to quantize to, got {}", elemName(to)));
  return std::vector{c.type(0).withKind(to)};
}

Types dequantizeLinear(const InferContext& c) {
  AGLOW_OK(checkScales(c));
  AGLOW_OK(checkFloat(c.attrs.elem("to")));
  if (c.has(2) && c.type(2).kind() != c.type(0).kind())
    return badQuantization(
        fmt::format("expected an 'offset' of the kind of 'x', got {} and {}", c.type(2).text(), c.type(0).text()));
  return std::vector{c.type(0).withKind(c.attrs.elem("to"))};
}

Types lookup(const InferContext& c) {
  constexpr size_t kEntries = 256;
  const ElemKind to = c.attrs.elem("to");
  if (to != ElemKind::UInt8 && to != ElemKind::Int8)
    return badNode(fmt::format("expected 'to' to be u8 or i8, got {}", elemName(to)));
  const std::vector<int64_t>& table = c.attrs.ints("table");
  if (table.size() != kEntries)
    return badNode(fmt::format("expected {} entries of 'table', got {}", kEntries, table.size()));
  const int64_t low = to == ElemKind::UInt8 ? 0 : INT8_MIN, high = to == ElemKind::UInt8 ? UINT8_MAX : INT8_MAX;
  for (const int64_t entry : table)
    if (entry < low || entry > high)
      return badNode(fmt::format("expected entries of 'table' from {} to {}, got {}", low, high, entry));
  return std::vector{c.type(0).withKind(to)};
}

Types observe(const InferContext& c) {
  const int64_t stepBits = c.attrs.integer("step_bits"), axis = c.attrs.integer("axis");
  if (stepBits < 0 || stepBits > HistogramBins::kMostStepBits)
    return badNode(fmt::format("expected 'step_bits' from 0 to {}, got {}", HistogramBins::kMostStepBits, stepBits));
  AGLOW_OK(checkShape(c, 0, Shape{HistogramBins::of(stepBits).counts()}));
  const bool blocked = c.attrs.flag("blocked");
  if (blocked) {
    AGLOW_OK(checkRank(c, 2, 3));
    if (axis != 1) return badNode(fmt::format("expected 1 for 'axis' of blocked channels, got {}", axis));
  } else if (axis != -1) {
    AGLOW_OK(checkAxis("axis", axis, c.type(2).shape()));
  }
  const ObservedForm form = observedForm(c.attrs, c.type(2).shape());
  AGLOW_TRY(const Shape lanes, computedShape({form.groups, form.lanes}));
  const Shape most{kObservedRows, lanes.elements()};
  const Type& channels = c.type(1);
  // The last block may have lanes without a channel.
  const bool fewer = blocked && channels.rank() == 2 && channels.dim(0) == kObservedRows && channels.dim(1) < most[1] &&
                     channels.dim(1) > most[1] - form.lanes;
  if (!fewer) AGLOW_OK(checkShape(c, 1, most));
  return std::vector{c.type(0), c.type(1)};
}

}  // namespace aglow::infer

namespace aglow {

ObservedForm observedForm(const Attrs& attrs, const Shape& x) {
  const int64_t axis = attrs.integer("axis");
  if (axis < 0) return {1, 1, x.elements(), 1};
  const int last = x.rank() - (attrs.flag("blocked") ? 1 : 0);
  ObservedForm form{1, x[static_cast<int>(axis)], 1, last < x.rank() ? x[last] : 1};
  for (int a = 0; a < last; ++a)
    if (a != axis) (a < axis ? form.outer : form.rows) *= x[a];
  // Channels that lie side by side are lanes.
  if (form.rows == 1 && form.lanes == 1) return {1, 1, form.outer, form.groups};
  return form;
}

}  // namespace aglow
