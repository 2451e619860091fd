// Pools: every tap of the window meets runs of results, padding left out.
#include <algorithm>

#include "reference/arithmetic.h"
#include "reference/reference.h"
#include "reference/window_runs.h"

namespace aglow::reference {

namespace {

// What the pools of a call share.
struct Pool {
  Pool(const KernelCall& call, Window w)
      : window(std::move(w)),
        input(spatialExtents(call.inType(0).shape())),
        result(spatialExtents(call.outType().shape())),
        inputSize(planeSize(input)),
        resultSize(planeSize(result)),
        planes(call.inType(0).dim(0) * call.inType(0).dim(1)),
        step(window.strides.back()) {}

  Window window;
  std::vector<int64_t> input, result;
  int64_t inputSize, resultSize, planes, step;
};

Result<Pool> poolOf(const KernelCall& call) {
  AGLOW_TRY(Window window, windowOf(call.attrs, call.attrs.ints("kernel")));
  return Pool(call, std::move(window));
}

// The first of equal elements wins, in the order of the taps; a window without elements has the kind's lowest value and
// index -1.
template <class D>
void maxima(const KernelCall& call, const Pool& pool, bool wantIndices) {
  const ElemKind kind = call.outType().kind();
  const std::vector<WindowRun> runs = windowRuns(pool.window, pool.input, pool.result);
  std::vector<D> x(static_cast<size_t>(pool.inputSize));
  std::vector<D> best(static_cast<size_t>(pool.resultSize));
  std::vector<int64_t> winner(static_cast<size_t>(pool.resultSize));
  for (int64_t plane = 0; plane < pool.planes; ++plane) {
    widen(kind, call.inData(0), plane * pool.inputSize, pool.inputSize, 1, x.data());
    std::fill(best.begin(), best.end(), lowestOf<D>(kind));
    std::fill(winner.begin(), winner.end(), -1);
    for (const WindowRun& run : runs) {
      for (int64_t i = 0; i < run.count; ++i) {
        const int64_t from = run.from + i * pool.step;
        const D value = x[static_cast<size_t>(from)];
        D& held = best[static_cast<size_t>(run.to + i)];
        int64_t& index = winner[static_cast<size_t>(run.to + i)];
        if (index >= 0 && !(held < value || (isNan(value) && !isNan(held)))) continue;
        held = value;
        index = plane * pool.inputSize + from;
      }
    }
    narrow(kind, best.data(), pool.resultSize, call.outData(), plane * pool.resultSize);
    if (wantIndices) narrow(ElemKind::Int64, winner.data(), pool.resultSize, call.outData(1), plane * pool.resultSize);
  }
}

Status maxPoolOf(const KernelCall& call, bool wantIndices) {
  AGLOW_TRY(const Pool pool, poolOf(call));
  inDomain(domainOf(call.outType().kind()), [&](auto zero) { maxima<decltype(zero)>(call, pool, wantIndices); });
  return {};
}

}  // namespace

Status maxPool(const KernelCall& call) { return maxPoolOf(call, false); }
Status maxPoolWithIndices(const KernelCall& call) { return maxPoolOf(call, true); }

// A window without elements has the mean 0.
Status avgPool(const KernelCall& call) {
  AGLOW_TRY(const Pool pool, poolOf(call));
  const ElemKind kind = call.outType().kind();
  const std::vector<WindowRun> runs = windowRuns(pool.window, pool.input, pool.result);
  const std::vector<int64_t> counts =
      tapCounts(pool.window, pool.input, pool.result, call.attrs.flag("count_include_pad"));
  std::vector<double> x(static_cast<size_t>(pool.inputSize));
  std::vector<double> mean(static_cast<size_t>(pool.resultSize));
  for (int64_t plane = 0; plane < pool.planes; ++plane) {
    widen(kind, call.inData(0), plane * pool.inputSize, pool.inputSize, 1, x.data());
    std::fill(mean.begin(), mean.end(), 0);
    for (const WindowRun& run : runs)
      for (int64_t i = 0; i < run.count; ++i)
        mean[static_cast<size_t>(run.to + i)] += x[static_cast<size_t>(run.from + i * pool.step)];
    for (size_t i = 0; i < mean.size(); ++i) mean[i] /= static_cast<double>(std::max<int64_t>(counts[i], 1));
    narrow(kind, mean.data(), pool.resultSize, call.outData(), plane * pool.resultSize);
  }
  return {};
}

}  // namespace aglow::reference
