// Values of a model compared with those expected, as rows for a table or for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "graph/model_value.h"
#include "tensor/compare.h"

namespace aglow::cli {

// What the user asks for, or what is usual for the kind of element.
struct Tolerances {
  std::optional<double> atol, rtol;
  double steps = 0;  // at least so much of the largest magnitude, where floats were rounded and atol is not given

  Tolerance of(const Tensor& expected) const;
};

// One tensor against another; a sequence has a row for each element.
struct ComparisonRow {
  std::string name, type;
  Comparison difference;
  std::string fault;                 // why nothing could be compared
  int64_t elements = 0;              // of each tensor
  std::string index, got, expected;  // of the worst element, where there is one

  bool agrees() const { return fault.empty() && difference.agrees(); }
  std::string verdict() const;
};

std::vector<ComparisonRow> compareValues(const std::string& name, const ModelValue& got, const ModelValue& expected,
                                         const Tolerances& tolerances);
bool allAgree(const std::vector<ComparisonRow>& rows);

std::string tableText(const std::vector<ComparisonRow>& rows);
nlohmann::json toJson(const ComparisonRow& row);

}  // namespace aglow::cli
