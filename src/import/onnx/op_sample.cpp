#include "import/onnx/op_sample.h"

#include "import/onnx/op_support.h"

namespace aglow::onnx {

std::vector<Tap> neighbourTaps(Builder& b, Value floor, int64_t shift, const std::vector<Value>& weights,
                               int64_t extent, bool held) {
  const Value zero = b.scalarLike(floor, 0), last = b.scalarLike(floor, static_cast<double>(extent - 1));
  std::vector<Tap> taps;
  for (size_t t = 0; t < weights.size(); ++t) {
    const int64_t step = shift + static_cast<int64_t>(t);
    const Value place = step == 0 ? floor : b.add(floor, b.scalarLike(floor, static_cast<double>(step)));
    const Value index = b.casted(b.clip(place, zero, last), ElemKind::Int64);
    if (held) {
      taps.push_back({index, weights[t]});
      continue;
    }
    const Value inside = b.logicalAnd(b.lessOrEqual(zero, place), b.lessOrEqual(place, last));
    taps.push_back({index, b.where(inside, weights[t], b.scalarLike(weights[t], 0))});
  }
  return taps;
}

std::vector<Tap> linearTaps(Builder& b, Value place, int64_t extent) {
  const Value floor = b.floor(place), share = b.sub(place, floor);
  return neighbourTaps(b, floor, 0, {b.sub(b.scalarLike(share, 1), share), share}, extent, false);
}

Value rowsOf(Builder& b, Value x) {
  const int64_t batch = x.dim(0), channels = x.dim(1), places = product(x.shape(), 2, x.rank());
  return b.reshaped(b.transposed(b.reshaped(x, {batch, channels, places}), {0, 2, 1}), {batch * places, channels});
}

std::vector<Value> sampledParts(Builder& b, Value rows, Value base, const std::vector<std::vector<Tap>>& axes,
                                const std::vector<int64_t>& extents) {
  // The first axis varies slowest: a row's number is base + (i0 * extent1 + i1) * extent2 + ...
  struct Partial {
    Value index, weight;
  };
  std::vector<Partial> partials{{}};
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    const Value extent = b.constant(Tensor::of(Type(ElemKind::Int64, Shape{}), std::vector{extents[axis]}));
    std::vector<Partial> longer;
    for (const Partial& p : partials)
      for (const Tap& tap : axes[axis])
        longer.push_back(
            {p.index ? b.add(b.mul(p.index, extent), tap.index) : tap.index, !p.weight    ? tap.weight
                                                                             : tap.weight ? b.mul(p.weight, tap.weight)
                                                                                          : p.weight});
    partials = std::move(longer);
  }
  std::vector<Value> parts;
  for (const Partial& p : partials) {
    const Value row = b.gather(rows, base ? b.add(base, p.index) : p.index);
    parts.push_back(p.weight ? b.mul(row, unsqueezed(b, p.weight, p.weight.rank())) : row);
  }
  return parts;
}

Value sampledRows(Builder& b, Value rows, Value base, const std::vector<std::vector<Tap>>& axes,
                  const std::vector<int64_t>& extents) {
  Value sum;
  for (const Value part : sampledParts(b, rows, base, axes, extents)) sum = sum ? b.add(sum, part) : part;
  return sum;
}

}  // namespace aglow::onnx
