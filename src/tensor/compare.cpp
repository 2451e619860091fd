// Comparison runs in the kind's own domain, so that neighbouring 64-bit integers do not become equal.
#include "tensor/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tensor/convert.h"

namespace aglow {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kChunk = 4096;  // elements widened at a time

template <class D>
double distance(D a, D b) {
  if constexpr (std::is_floating_point_v<D>) {
    if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
    const double d = std::abs(a - b);
    return std::isnan(d) ? kInfinity : d;
  } else {
    // Exact also where the difference of signed numbers would overflow.
    return static_cast<double>(a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
                                     : static_cast<uint64_t>(b) - static_cast<uint64_t>(a));
  }
}

// Calls f(position, value, value) for all pairs of elements.
template <class D, class F>
void forPairs(const Tensor& a, const Tensor& b, F&& f) {
  std::vector<D> left(kChunk), right(kChunk);
  const int64_t count = a.type().elements();
  for (int64_t first = 0; first < count; first += kChunk) {
    const int64_t size = std::min(kChunk, count - first);
    widen(a.type().kind(), a.data(), first, size, 1, left.data());
    widen(b.type().kind(), b.data(), first, size, 1, right.data());
    for (int64_t i = 0; i < size; ++i) f(first + i, left[static_cast<size_t>(i)], right[static_cast<size_t>(i)]);
  }
}

}  // namespace

Tolerance defaultTolerance(ElemKind kind) {
  switch (kind) {
    case ElemKind::Float64:
    case ElemKind::Float32:
      return {1e-5, 1e-3};
    case ElemKind::Float16:
      return {1e-3, 1e-2};
    case ElemKind::BFloat16:
      return {1e-2, 4e-2};
    default:
      // The narrowest floats have steps of an eighth to a half; one step is what rounding may cost.
      return isFloat(kind) ? Tolerance{1e-2, 0.25} : Tolerance{};
  }
}

Comparison compare(const Tensor& got, const Tensor& expected, Tolerance tolerance) {
  Comparison result;
  if (storageKind(got.type().kind()) != storageKind(expected.type().kind()) ||
      got.type().shape() != expected.type().shape()) {
    result.typeFault = fmt::format("{}; expected {}", got.type().text(), expected.type().text());
    return result;
  }
  double furthest = 0, furthestApart = 0;
  inDomain(domainOf(got.type().kind()), [&](auto domain) {
    using D = decltype(domain);
    forPairs<D>(got, expected, [&](int64_t position, D a, D b) {
      const double d = distance(a, b);
      if (d == 0) return;
      const double size = std::abs(static_cast<double>(b));
      const double allowed = tolerance.atol + (std::isfinite(size) ? tolerance.rtol * size : 0);
      result.maxAbs = std::max(result.maxAbs, d);
      // NaN has no size to compare with.
      result.maxRel = std::max(result.maxRel, size == 0 || !std::isfinite(size) ? kInfinity : d / size);
      if (!(d <= allowed)) ++result.beyond;
      const double excess = allowed > 0 ? d / allowed : kInfinity;
      // Where nothing is allowed, all are infinitely beyond.
      if (excess > furthest || (excess == furthest && d > furthestApart)) {
        furthest = excess;
        furthestApart = d;
        result.worst = position;
      }
    });
  });
  return result;
}

std::string indexText(const Shape& shape, int64_t position) {
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[static_cast<size_t>(axis)] = position % shape[axis];
    position /= shape[axis];
  }
  return fmt::format("[{}]", fmt::join(index, ","));
}

std::string elementText(const Tensor& tensor, int64_t position) {
  const ElemKind kind = tensor.type().kind();
  return inDomain(domainOf(kind), [&](auto domain) {
    widen(kind, tensor.data(), position, 1, 1, &domain);
    if constexpr (std::is_floating_point_v<decltype(domain)>)
      return fmt::format("{:.{}g}", domain, kind == ElemKind::Float64 ? 17 : 9);
    else
      return fmt::format("{}", domain);
  });
}

Statistics statisticsOf(const Tensor& tensor) {
  Statistics s;
  double sum = 0;
  forPairs<double>(tensor, tensor, [&](int64_t, double value, double) {
    if (std::isnan(value)) {
      ++s.nan;
    } else if (std::isinf(value)) {
      ++s.infinite;
    } else {
      s.min = s.finite == 0 ? value : std::min(s.min, value);
      s.max = s.finite == 0 ? value : std::max(s.max, value);
      sum += value;
      ++s.finite;
    }
  });
  if (s.finite > 0) s.mean = sum / static_cast<double>(s.finite);
  return s;
}

}  // namespace aglow
