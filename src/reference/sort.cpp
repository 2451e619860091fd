// The largest and smallest along an axis. NaN counts as larger than every number.
#include <algorithm>
#include <numeric>

#include "reference/arithmetic.h"
#include "reference/axis_lines.h"
#include "reference/reference.h"

namespace aglow::reference {

namespace {

template <class D>
bool below(D a, D b) {
  return a < b || (isNan(b) && !isNan(a));
}

}  // namespace

// NaN wins for max and for min; of several the first or, with `last`, the last.
Status argReduce(const KernelCall& call) {
  const AxisLines lines(call.inType(0).shape(), call.attrs.integer("axis"));
  const ElemKind kind = call.inType(0).kind();
  const bool largest = call.attrs.word("kind") == "max";
  const bool last = call.attrs.flag("last");
  inDomain(domainOf(kind), [&](auto zero) {
    using D = decltype(zero);
    const auto beats = [&](D a, D b) { return isNan(a) || (largest ? b < a : a < b); };
    std::vector<D> values(static_cast<size_t>(lines.extent));
    lines.forEach([&](int64_t first, int64_t line) {
      widen(kind, call.inData(0), first, lines.extent, lines.stride, values.data());
      int64_t best = 0;
      for (int64_t i = 1; i < lines.extent; ++i) {
        const D value = values[static_cast<size_t>(i)];
        const D held = values[static_cast<size_t>(best)];
        if (isNan(held) ? isNan(value) && last : beats(value, held) || (last && value == held)) best = i;
      }
      narrow(ElemKind::Int64, &best, 1, call.outData(), line);
    });
  });
  return {};
}

Status topK(const KernelCall& call) {
  const int64_t axis = call.attrs.integer("axis");
  const AxisLines lines(call.inType(0).shape(), axis);
  const ElemKind kind = call.inType(0).kind();
  const int64_t k = call.attrs.integer("k");
  const bool largest = call.attrs.flag("largest");
  inDomain(domainOf(kind), [&](auto zero) {
    using D = decltype(zero);
    std::vector<D> values(static_cast<size_t>(lines.extent));
    std::vector<int64_t> order(static_cast<size_t>(lines.extent));
    const auto before = [&](int64_t a, int64_t b) {
      const D x = values[static_cast<size_t>(a)];
      const D y = values[static_cast<size_t>(b)];
      if (largest ? below(y, x) : below(x, y)) return true;
      if (largest ? below(x, y) : below(y, x)) return false;
      return a < b;
    };
    lines.forEach([&](int64_t first, int64_t line) {
      widen(kind, call.inData(0), first, lines.extent, lines.stride, values.data());
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
      const int64_t to = line / lines.stride * k * lines.stride + line % lines.stride;
      for (int64_t i = 0; i < k; ++i) {
        const int64_t index = order[static_cast<size_t>(i)];
        narrow(kind, &values[static_cast<size_t>(index)], 1, call.outData(0), to + i * lines.stride);
        narrow(ElemKind::Int64, &index, 1, call.outData(1), to + i * lines.stride);
      }
    });
  });
  return {};
}

}  // namespace aglow::reference
