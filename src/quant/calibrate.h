// Which range of a value integers have to cover, chosen from its histogram: rows of one table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "quant/profile.h"

namespace aglow::quant {

struct Range {
  double low = 0, high = 0;
};

// The histogram with bins of equal width from the smallest to the largest value; zeros, which every schema has exactly,
// are left out.
std::vector<double> evenBins(const ValueProfile& value, size_t count);

struct CalibrationRow {
  std::string_view name, doc;
  double parameter;  // where none is given; 0: it takes none
  // `levels` steps cover the range.
  Range (*choose)(const ValueProfile& value, double parameter, int levels);
};
std::span<const CalibrationRow> calibrations();

// A row with its parameter.
struct Calibration {
  const CalibrationRow* row = calibrations().data();
  double parameter = row->parameter;

  // "mse", or "percentile=99.9"; Usage error with the names there are.
  static Result<Calibration> parse(std::string_view text);
  // Within what was seen; of a value that was never seen the empty range at 0.
  Range choose(const ValueProfile& value, int levels) const;
};

}  // namespace aglow::quant
