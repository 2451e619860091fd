// Reductions, and running sums and products.
#include <algorithm>

#include "reference/arithmetic.h"
#include "reference/axis_lines.h"
#include "reference/reference.h"
#include "reference/strided.h"

namespace aglow::reference {

namespace {

// Runs along x, each into one result or into neighbouring ones.
template <class D, class F>
void combine(const KernelCall& call, std::vector<D>& results, F f) {
  const Shape& x = call.inType(0).shape();
  std::vector<int64_t> kept = x.dims();
  for (const int64_t axis : call.attrs.ints("axes")) kept[static_cast<size_t>(axis)] = 1;
  const std::vector<StridedAxis> axes = joinedAxes(x.dims(), x.strides(), broadcastStrides(Shape(kept), x));
  const StridedAxis run = axes.back();
  constexpr int64_t kChunk = 1024;
  std::vector<D> values(static_cast<size_t>(std::min(run.extent, kChunk)));
  forEachRun(axes, [&](int64_t from, int64_t to) {
    for (int64_t first = 0; first < run.extent; first += kChunk) {
      const int64_t count = std::min(kChunk, run.extent - first);
      widen(call.inType(0).kind(), call.inData(0), from + first * run.from, count, run.from, values.data());
      D* into = results.data() + to + first * run.to;
      if (run.to == 0) {
        D held = *into;
        for (int64_t i = 0; i < count; ++i) held = f(held, values[static_cast<size_t>(i)]);
        *into = held;
      } else {
        for (int64_t i = 0; i < count; ++i) into[i * run.to] = f(into[i * run.to], values[static_cast<size_t>(i)]);
      }
    }
  });
}

template <class D>
std::vector<D> reduced(const KernelCall& call) {
  const std::string& how = call.attrs.word("kind");
  const ElemKind kind = call.outType().kind();
  const auto start = [&](D value) { return std::vector<D>(static_cast<size_t>(call.outType().elements()), value); };
  std::vector<D> results;
  if (how == "max") {
    results = start(lowestOf<D>(kind));
    combine(call, results, larger<D>);
  } else if (how == "min") {
    results = start(highestOf<D>(kind));
    combine(call, results, smaller<D>);
  } else if (how == "prod") {
    results = start(1);
    combine(call, results, product<D>);
  } else {
    results = start(0);
    combine(call, results, sum<D>);
  }
  if (how == "mean" && !results.empty()) {
    D count = 1;
    for (const int64_t axis : call.attrs.ints("axes"))
      count *= static_cast<D>(call.inType(0).dim(static_cast<int>(axis)));
    for (D& result : results) result = quotient(result, count);
  }
  return results;
}

}  // namespace

// The mean of no elements is NaN, or 0 for integers.
Status reduce(const KernelCall& call) {
  inDomain(domainOf(call.outType().kind()), [&](auto zero) { store(call.out[0], reduced<decltype(zero)>(call)); });
  return {};
}

Status scan(const KernelCall& call) {
  const ElemKind kind = call.outType().kind();
  const bool products = call.attrs.word("kind") == "prod";
  const bool exclusive = call.attrs.flag("exclusive");
  const AxisLines lines(call.inType(0).shape(), call.attrs.integer("axis"));
  inWrappingDomain(kind, [&](auto zero) {
    using D = decltype(zero);
    std::vector<D> values(static_cast<size_t>(lines.extent));
    lines.forEach([&](int64_t first, int64_t) {
      widen(kind, call.inData(0), first, lines.extent, lines.stride, values.data());
      if (call.attrs.flag("reverse")) std::reverse(values.begin(), values.end());
      D held = products ? D{1} : D{0};
      for (D& value : values) {
        const D next = products ? product(held, value) : sum(held, value);
        value = exclusive ? held : next;
        held = next;
      }
      if (call.attrs.flag("reverse")) std::reverse(values.begin(), values.end());
      for (int64_t i = 0; i < lines.extent; ++i)
        narrow(kind, &values[static_cast<size_t>(i)], 1, call.outData(), first + i * lines.stride);
    });
  });
  return {};
}

}  // namespace aglow::reference
