#include "quant/calibrate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "support/suggest.h"

namespace aglow::quant {

namespace {

Range minMax(const ValueProfile& value, double, int) { return {value.min, value.max}; }

// The ends below and above which half of the rest lies; where nothing lies on one side of zero, all of it lies on the
// other.
Range percentile(const ValueProfile& value, double percent, int) {
  const double rest = (1 - percent / 100) * static_cast<double>(value.elements);
  const bool oneSided = value.min >= 0 || value.max <= 0;
  const double beyond = oneSided ? rest : rest / 2;
  Range range{value.min, value.max};
  const auto at = [&](int bin) { return static_cast<double>(value.counts[static_cast<size_t>(bin)]); };
  if (value.min < 0) {
    int bin = 0;
    for (double seen = at(0); seen <= beyond && bin + 1 < Bins::kCount; seen += at(++bin)) {
    }
    range.low = std::max(range.low, Bins::low(bin));
  }
  if (value.max > 0) {
    int bin = Bins::kCount - 1;
    for (double seen = at(bin); seen <= beyond && bin > 0; seen += at(--bin)) {
    }
    range.high = std::min(range.high, Bins::high(bin));
  }
  return range;
}

// Ranges that are tried: all of what was seen, and those of magnitudes up to smaller and smaller ends.
constexpr int kTried = 80, kStepsAnOctave = 10;
Range within(const ValueProfile& value, int step) {
  const double largest = std::max(std::abs(value.min), std::abs(value.max));
  const double end = largest * std::exp2(-static_cast<double>(step) / kStepsAnOctave);
  return {std::max<double>(value.min, -end), std::min<double>(value.max, end)};
}

// Rounding within the range errs by a step at most, evenly; what lies outside errs by its distance from the end.
double squaredError(const ValueProfile& value, const Range& range, int levels) {
  const double step = (std::max(range.high, 0.0) - std::min(range.low, 0.0)) / (levels - 1);
  double sum = 0;
  for (int bin = 0; bin < Bins::kCount; ++bin) {
    const auto count = static_cast<double>(value.counts[static_cast<size_t>(bin)]);
    if (count == 0 || bin == Bins::kZero) continue;
    const double middle = (Bins::low(bin) + Bins::high(bin)) / 2;
    const double outside = std::max({range.low - middle, middle - range.high, 0.0});
    // Small values all become zero.
    const double rounding = outside > 0 ? 0 : std::min(step * step / 12, middle * middle);
    sum += count * (outside * outside + rounding);
  }
  return sum;
}

Range leastSquares(const ValueProfile& value, double, int levels) {
  Range best{value.min, value.max};
  double least = squaredError(value, best, levels);
  for (int step = 1; step <= kTried; ++step) {
    const Range range = within(value, step);
    const double error = squaredError(value, range, levels);
    if (error >= least) continue;
    least = error;
    best = range;
  }
  return best;
}

// How much is lost when the bins from `first` to `end`, with what lies outside put into the outermost ones, are
// replaced by `levels` wider ones, each spread evenly over the bins in it that are not empty.
double divergence(const std::vector<double>& even, size_t first, size_t end, int levels) {
  std::vector<double> held(even.begin() + static_cast<ptrdiff_t>(first), even.begin() + static_cast<ptrdiff_t>(end));
  const std::vector<double> inside = held;
  for (size_t i = 0; i < first; ++i) held.front() += even[i];
  for (size_t i = end; i < even.size(); ++i) held.back() += even[i];
  double all = 0, spread = 0;
  for (const double amount : held) all += amount;
  for (const double amount : inside) spread += amount;
  if (all == 0 || spread == 0) return HUGE_VAL;
  const size_t count = held.size(), wide = static_cast<size_t>(levels);
  double sum = 0;
  for (size_t level = 0; level < wide; ++level) {
    const size_t from = level * count / wide, to = (level + 1) * count / wide;
    double amount = 0, filled = 0;
    for (size_t i = from; i < to; ++i) {
      amount += inside[i];
      filled += held[i] > 0 ? 1 : 0;
    }
    for (size_t i = from; i < to; ++i) {
      if (held[i] == 0) continue;
      // An outermost bin that holds only what was cut off has nothing to stand for it.
      const double p = held[i] / all, q = std::max(amount / filled / spread, 1e-9);
      sum += p * std::log(p / q);
    }
  }
  return sum;
}

Range entropy(const ValueProfile& value, double, int levels) {
  constexpr size_t kEven = 2048;
  const Range whole{value.min, value.max};
  if (!(value.min < value.max)) return whole;
  const std::vector<double> even = evenBins(value, kEven);
  const double width = (whole.high - whole.low) / kEven;
  Range best = whole;
  double least = divergence(even, 0, kEven, levels);
  for (int step = 1; step <= kTried; ++step) {
    const Range range = within(value, step);
    if (range.low >= range.high) break;
    const auto place = [&](double at) {
      return static_cast<size_t>(std::clamp((at - whole.low) / width, 0.0, 2048.0));
    };
    const size_t first = place(range.low), end = std::max(place(range.high), first + 1);
    if (end - first < static_cast<size_t>(levels)) break;
    const double lost = divergence(even, first, end, levels);
    if (lost >= least) continue;
    least = lost;
    best = range;
  }
  return best;
}

constexpr CalibrationRow kRows[] = {
    {"min-max", "all values that were seen", 0, minMax},
    {"percentile", "all but the outermost ones; 99.99 percent unless another number is given", 99.99, percentile},
    {"mse", "the range with the least mean square error", 0, leastSquares},
    {"kl", "the range whose distribution diverges least from the one that was seen", 0, entropy},
};

}  // namespace

std::vector<double> evenBins(const ValueProfile& value, size_t count) {
  std::vector<double> even(count);
  const double from = value.min, width = (static_cast<double>(value.max) - from) / static_cast<double>(count);
  const auto last = static_cast<double>(count);
  for (int bin = 0; bin < Bins::kCount; ++bin) {
    const auto amount = static_cast<double>(value.counts[static_cast<size_t>(bin)]);
    if (amount == 0 || bin == Bins::kZero) continue;
    const double low = std::clamp((Bins::low(bin) - from) / width, 0.0, last);
    const double high = std::clamp((Bins::high(bin) - from) / width, 0.0, last);
    const auto first = std::min(static_cast<size_t>(low), count - 1),
               end = std::min(static_cast<size_t>(high), count - 1);
    for (size_t i = first; i <= end; ++i) {
      const double within = std::min(high, static_cast<double>(i + 1)) - std::max(low, static_cast<double>(i));
      even[i] += first == end ? amount : amount * within / (high - low);
    }
  }
  return even;
}

std::span<const CalibrationRow> calibrations() { return kRows; }

Result<Calibration> Calibration::parse(std::string_view text) {
  const size_t at = text.find('=');
  const std::string_view name = text.substr(0, at);
  std::vector<std::string_view> names;
  for (const CalibrationRow& row : kRows) {
    names.push_back(row.name);
    if (row.name != name) continue;
    Calibration chosen{.row = &row, .parameter = row.parameter};
    if (at == std::string_view::npos) return chosen;
    const std::string number(text.substr(at + 1));
    const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), chosen.parameter);
    if (row.parameter == 0 || fault != std::errc() || end != number.data() + number.size() ||
        !(chosen.parameter > 50 && chosen.parameter <= 100))
      return Error{.code = Code::Usage,
                   .message = row.parameter == 0
                                  ? fmt::format("calibration '{}' takes no parameter, got '{}'", name, number)
                                  : fmt::format("expected a percentage above 50 and up to 100, got '{}'", number)};
    return chosen;
  }
  std::string hint = didYouMean(name, names);
  if (hint.empty()) hint = fmt::format("there are: {}", fmt::join(names, ", "));
  return Error{
      .code = Code::Usage, .message = fmt::format("there is no calibration '{}'", name), .where = {}, .hint = hint};
}

Range Calibration::choose(const ValueProfile& value, int levels) const {
  if (value.elements == 0) return {};
  return row->choose(value, parameter, levels);
}

}  // namespace aglow::quant
