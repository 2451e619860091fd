// Convolution: for every tap of the filter, runs of results get runs of the input times the tap's weight.
#include "reference/arithmetic.h"
#include "reference/reference.h"
#include "reference/window_runs.h"

namespace aglow::reference {

namespace {

// Elements in the domain of sums, less their offset.
template <class D>
void widenLess(const KernelCall& call, int operand, int64_t first, int64_t count, D offset, D* to) {
  widen(call.inType(operand).kind(), call.inData(operand), first, count, 1, to);
  if (offset == D{0}) return;
  for (int64_t i = 0; i < count; ++i) to[i] -= offset;
}

template <class D>
void convolve(const KernelCall& call, const Window& window, D xOffset = 0, D filterOffset = 0) {
  const Shape& x = call.inType(0).shape();
  const Shape& filter = call.inType(1).shape();
  const Shape& y = call.outType().shape();
  const ElemKind kind = call.outType().kind();
  const int64_t group = call.attrs.integer("group");
  const std::vector<int64_t> input = spatialExtents(x);
  const std::vector<int64_t> result = spatialExtents(y);
  const std::vector<WindowRun> runs = windowRuns(window, input, result);
  const int64_t inputSize = planeSize(input);
  const int64_t resultSize = planeSize(result);
  const int64_t taps = planeSize(window.kernel);
  const int64_t step = window.strides.back();
  const int64_t depth = filter[1];
  const int64_t outChannels = y[1];

  std::vector<D> bias(static_cast<size_t>(outChannels), D{0});
  if (call.has(2)) widen(kind, call.inData(2), 0, outChannels, 1, bias.data());
  std::vector<D> item(static_cast<size_t>(x[1] * inputSize));
  std::vector<D> weights(static_cast<size_t>(depth * taps));
  std::vector<D> plane(static_cast<size_t>(resultSize));
  for (int64_t n = 0; n < x[0]; ++n) {
    widenLess(call, 0, n * x[1] * inputSize, x[1] * inputSize, xOffset, item.data());
    for (int64_t out = 0; out < outChannels; ++out) {
      const int64_t firstChannel = out / (outChannels / group) * depth;
      widenLess(call, 1, out * depth * taps, depth * taps, filterOffset, weights.data());
      std::fill(plane.begin(), plane.end(), bias[static_cast<size_t>(out)]);
      for (int64_t in = 0; in < depth; ++in)
        addTaps(runs, step, weights.data() + in * taps, item.data() + (firstChannel + in) * inputSize, plane.data());
      narrow(kind, plane.data(), resultSize, call.outData(), (n * outChannels + out) * resultSize);
    }
  }
}

}  // namespace

Status conv(const KernelCall& call) {
  AGLOW_TRY(const Window window, windowOf(call.attrs, spatialExtents(call.inType(1).shape())));
  inWrappingDomain(call.outType().kind(), [&](auto zero) { convolve<decltype(zero)>(call, window); });
  return {};
}

Status byteConv(const KernelCall& call) {
  AGLOW_TRY(const Window window, windowOf(call.attrs, spatialExtents(call.inType(1).shape())));
  inWrappingDomain(ElemKind::Int32, [&](auto zero) {
    using Sum = decltype(zero);
    convolve<Sum>(call, window, static_cast<Sum>(call.attrs.integer("x_offset")),
                  static_cast<Sum>(call.attrs.integer("filter_offset")));
  });
  return {};
}

}  // namespace aglow::reference
