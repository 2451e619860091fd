// Ranges of results whose taps lie inside, computed per axis and combined to runs.
#include "reference/window_runs.h"

#include <algorithm>

#include "reference/strided.h"
#include "support/sizes.h"

namespace aglow {

namespace {

// A tap along one axis and the results whose tap lies inside of the input.
struct Reach {
  int64_t tap;
  int64_t first;
  int64_t count;
};

// The taps that meet the input at all. Their range is computed first, because padding may be far larger than the input.
std::vector<Reach> meetingTaps(const Window& window, size_t axis, int64_t input, int64_t results) {
  const int64_t stride = window.strides[axis];
  const int64_t dilation = window.dilations[axis];
  const int64_t before = window.before[axis];
  const int64_t firstTap = std::max<int64_t>(ceilDiv(before - (results - 1) * stride, dilation), 0);
  const int64_t endTap = std::min(ceilDiv(before + input, dilation), window.kernel[axis]);
  std::vector<Reach> reaches;
  for (int64_t tap = firstTap; tap < endTap; ++tap) {
    const int64_t shift = before - tap * dilation;
    const int64_t first = std::clamp<int64_t>(ceilDiv(shift, stride), 0, results);
    const int64_t end = std::clamp<int64_t>(ceilDiv(input + shift, stride), first, results);
    if (first < end) reaches.push_back({tap, first, end - first});
  }
  return reaches;
}

// The next index in row-major order; false after the last.
bool advance(std::vector<size_t>& index, const std::vector<std::vector<Reach>>& reaches) {
  for (size_t a = index.size(); a-- > 0;) {
    if (++index[a] < reaches[a].size()) return true;
    index[a] = 0;
  }
  return false;
}

}  // namespace

std::vector<WindowRun> windowRuns(const Window& window, const std::vector<int64_t>& input,
                                  const std::vector<int64_t>& result) {
  std::vector<WindowRun> runs;
  if (planeSize(result) == 0) return runs;
  const size_t axes = input.size();
  std::vector<std::vector<Reach>> reaches;
  for (size_t a = 0; a < axes; ++a) {
    reaches.push_back(meetingTaps(window, a, input[a], result[a]));
    if (reaches.back().empty()) return runs;
  }
  const std::vector<int64_t> inputStrides = Shape(input).strides();
  const std::vector<int64_t> resultStrides = Shape(result).strides();
  const std::vector<int64_t> tapStrides = Shape(window.kernel).strides();
  std::vector<size_t> index(axes, 0);
  do {
    std::vector<StridedAxis> rows;
    WindowRun start;
    for (size_t a = 0; a < axes; ++a) {
      const Reach& reach = reaches[a][index[a]];
      const int64_t position = reach.first * window.strides[a] - window.before[a] + reach.tap * window.dilations[a];
      // A step that is never taken may be longer than any memory.
      const int64_t step = reach.count > 1 ? window.strides[a] * inputStrides[a] : 0;
      rows.push_back({reach.count, step, resultStrides[a]});
      start.tap += reach.tap * tapStrides[a];
      start.from += position * inputStrides[a];
      start.to += reach.first * resultStrides[a];
    }
    const size_t earlier = runs.size();
    forEachRun(rows, [&](int64_t fromRow, int64_t toRow) {
      const WindowRun run{start.tap, start.to + toRow, start.from + fromRow, rows.back().extent};
      // Whole rows of input and result that continue each other are one run.
      const bool continues = runs.size() > earlier && window.strides.back() == 1 &&
                             runs.back().to + runs.back().count == run.to &&
                             runs.back().from + runs.back().count == run.from;
      if (continues)
        runs.back().count += run.count;
      else
        runs.push_back(run);
    });
  } while (advance(index, reaches));
  return runs;
}

std::vector<int64_t> tapCounts(const Window& window, const std::vector<int64_t>& input,
                               const std::vector<int64_t>& result, bool padding) {
  std::vector<int64_t> counts(1, 1);
  for (size_t a = 0; a < input.size(); ++a) {
    const int64_t low = padding ? -window.before[a] : 0;
    const int64_t high = padding ? input[a] + window.after[a] : input[a];
    const int64_t dilation = window.dilations[a];
    std::vector<int64_t> products;
    for (const int64_t outer : counts) {
      for (int64_t i = 0; i < result[a]; ++i) {
        const int64_t shift = window.before[a] - i * window.strides[a];
        const int64_t first = std::clamp<int64_t>(ceilDiv(low + shift, dilation), 0, window.kernel[a]);
        const int64_t end = std::clamp<int64_t>(ceilDiv(high + shift, dilation), first, window.kernel[a]);
        products.push_back(outer * (end - first));
      }
    }
    counts = std::move(products);
  }
  return counts;
}

}  // namespace aglow
