// What a run tells of a value: counts in bins, and ends and moments of its channels.
#include "ops/observed.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "reference/reference.h"

namespace aglow::reference {

Status observe(const KernelCall& call) {
  const ObservedForm form = observedForm(call.attrs, call.inType(2).shape());
  const HistogramBins bins = HistogramBins::of(call.attrs.integer("step_bits"));
  const int64_t channels = call.outType(1).dim(1);
  const auto* x = call.in[2].as<const float>();
  auto* counts = call.out[0].as<int64_t>();
  if (call.outData(0) != call.inData(0)) std::copy_n(call.in[0].as<const int64_t>(), bins.counts(), counts);
  const auto* known = call.in[1].as<const double>();
  auto* rows = call.out[1].as<double>();
  const auto row = [&](auto* first, ObservedRow which) { return first + which * channels; };
  std::copy_n(row(known, kSmallest), channels, row(rows, kSmallest));
  std::copy_n(row(known, kLargest), channels, row(rows, kLargest));
  std::vector<double> sums(static_cast<size_t>(channels)), squares(sums);
  const auto look = [&](int64_t channel, float value) {
    ++counts[bins.bin(std::bit_cast<int32_t>(value))];
    if (!std::isfinite(value)) return;
    const auto wide = static_cast<double>(value);
    row(rows, kSmallest)[channel] = std::min(row(rows, kSmallest)[channel], wide);
    row(rows, kLargest)[channel] = std::max(row(rows, kLargest)[channel], wide);
    sums[static_cast<size_t>(channel)] += wide;
    squares[static_cast<size_t>(channel)] += wide * wide;
  };
  for (int64_t block = 0; block < form.outer * form.groups; ++block) {
    const int64_t first = block % form.groups * form.lanes;
    for (int64_t i = 0; i < form.rows * form.lanes; ++i)
      if (const int64_t channel = first + i % form.lanes; channel < channels)
        look(channel, x[block * form.rows * form.lanes + i]);
  }
  const auto each = static_cast<double>(std::max<int64_t>(form.outer * form.rows, 1));
  for (int64_t c = 0; c < channels; ++c) {
    row(rows, kMean)[c] = row(known, kMean)[c] + onGrid(sums[static_cast<size_t>(c)] / each);
    row(rows, kSquare)[c] = row(known, kSquare)[c] + onGrid(squares[static_cast<size_t>(c)] / each);
  }
  return {};
}

}  // namespace aglow::reference
