#include "optimize/sampling.h"

#include <numeric>

namespace aglow::sampling {

Shape shape(Rng& rng, int minRank, int maxRank) {
  std::vector<int64_t> dims(static_cast<size_t>(rng.between(minRank, maxRank)));
  for (int64_t& dim : dims) dim = rng.between(1, 4);
  return Shape(std::move(dims));
}

Shape broadcastable(Rng& rng, const Shape& to) {
  std::vector<int64_t> dims(to.dims().begin() + rng.between(0, to.rank()), to.dims().end());
  for (int64_t& dim : dims)
    if (rng.between(0, 3) == 0) dim = 1;
  return Shape(std::move(dims));
}

std::vector<int64_t> perm(Rng& rng, int rank) {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  for (int i = rank - 1; i > 0; --i)
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(rng.between(0, i))]);
  return order;
}

ElemKind floatKind(Rng& rng) { return rng.pick<ElemKind>({ElemKind::Float32, ElemKind::Float32, ElemKind::Float64}); }
ElemKind intKind(Rng& rng) {
  return rng.pick<ElemKind>({ElemKind::Int64, ElemKind::Int32, ElemKind::Int8, ElemKind::UInt8, ElemKind::UInt32});
}
ElemKind anyKind(Rng& rng) { return rng.flip() ? floatKind(rng) : intKind(rng); }

Value input(Builder& b, Shape shape, ElemKind kind) { return b.input("x", Type(kind, std::move(shape))); }

Value constant(Rng& rng, Builder& b, const Shape& shape, ElemKind kind, double low, double high) {
  const auto count = static_cast<size_t>(shape.elements());
  std::vector<double> values(count);
  for (double& value : values) {
    value = isFloat(kind) ? rng.real(low, high) : static_cast<double>(static_cast<int64_t>(rng.real(low, high + 1)));
    if (isUnsigned(kind) && value < 0) value = -value;
  }
  return b.constant(Tensor::fromDoubles(Type(kind, shape), values));
}

Value number(Rng& rng, Builder& b, double value, const Shape& shape, ElemKind kind) {
  const Shape chosen = broadcastable(rng, shape);
  const Type type(kind, chosen);
  if (rng.flip()) return b.splat({.value = value, .elem = kind, .shape = chosen.dims()});
  return b.constant(Tensor::fromDoubles(type, std::vector<double>(static_cast<size_t>(chosen.elements()), value)));
}

Value slice(Rng& rng, Builder& b, Value x) {
  std::vector<int64_t> starts, sizes, steps;
  for (const int64_t extent : x.shape().dims()) {
    const int64_t first = rng.between(0, extent - 1), last = rng.between(0, extent - 1);
    const int64_t step = first <= last ? rng.between(1, 2) : -rng.between(1, 2);
    starts.push_back(first);
    steps.push_back(step);
    sizes.push_back((last - first) / step + 1);
  }
  return b.slice(x, {.starts = starts, .sizes = sizes, .steps = steps});
}

Value apply(Builder& b, Op op, std::vector<Value> operands) {
  return b.make(std::move(operands), Attrs(opDef(op)))->result();
}

Value either(Rng& rng, Builder& b, Op op, Value x, Value y) {
  return rng.flip() ? apply(b, op, {x, y}) : apply(b, op, {y, x});
}

Value anyInput(Rng& rng, Builder& b, ElemKind kind) { return input(b, shape(rng, 0, 3), kind); }

Value withNumber(Rng& rng, Builder& b, Op op, double value, ElemKind kind) {
  const Shape large = shape(rng, 0, 3), small = broadcastable(rng, large);
  const bool larger = rng.between(0, 3) == 0;
  const Value x = input(b, larger ? small : large, kind);
  const Value n =
      larger ? b.splat({.value = value, .elem = kind, .shape = large.dims()}) : number(rng, b, value, large, kind);
  return isCommutative(op) ? either(rng, b, op, x, n) : apply(b, op, {x, n});
}

}  // namespace aglow::sampling
