#include "cli/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "support/quote.h"

namespace aglow::cli {

namespace {

std::string describe(const ModelValue& value) {
  if (value.none) return "nothing";
  if (value.isSequence) return fmt::format("a sequence of {}", value.items());
  return value.text();
}

ComparisonRow compareTensors(std::string name, const Tensor& got, const Tensor& expected,
                             const Tolerances& tolerances) {
  ComparisonRow row;
  row.name = std::move(name);
  row.type = got.type().text();
  row.elements = got.type().elements();
  row.difference = compare(got, expected, tolerances.of(expected));
  row.fault = row.difference.typeFault;
  if (const int64_t worst = row.difference.worst; worst >= 0) {
    row.index = indexText(got.type().shape(), worst);
    row.got = elementText(got, worst);
    row.expected = elementText(expected, worst);
  }
  return row;
}

ComparisonRow compareStrings(std::string name, const StringTensor& got, const StringTensor& expected) {
  ComparisonRow row;
  row.name = std::move(name);
  row.type = got.text();
  row.elements = got.shape().elements();
  if (got.shape() != expected.shape()) {
    row.fault = fmt::format("{}; expected {}", got.text(), expected.text());
    return row;
  }
  for (size_t i = got.strings().size(); i-- > 0;) {
    if (got.strings()[i] == expected.strings()[i]) continue;
    ++row.difference.beyond;
    row.difference.worst = static_cast<int64_t>(i);
    row.index = indexText(got.shape(), row.difference.worst);
    row.got = aglow::quoted(got.strings()[i]);
    row.expected = aglow::quoted(expected.strings()[i]);
  }
  return row;
}

// A map, or all maps of a sequence, in one row: keys have to be the same, and values within the tolerance. Faults name
// the map that they are in.
ComparisonRow compareMaps(const std::string& name, const ModelValue& got, const ModelValue& expected,
                          const Tolerances& tolerances) {
  ComparisonRow total;
  total.name = name;
  total.type = got.isSequence ? fmt::format("{} x {}", got.maps.size(), got.maps.front().text()) : got.text();
  for (size_t i = 0; i < got.maps.size(); ++i) {
    const MapValue &a = got.maps[i], &b = expected.maps[i];
    const std::string item = got.isSequence ? fmt::format("[{}]", i) : "";
    if (a.keys() != b.keys() || a.hasStrings() != b.hasStrings()) {
      total.fault = fmt::format("{} has other keys, or values of another kind", item.empty() ? "the map" : item);
      return total;
    }
    ComparisonRow row = a.hasStrings() ? compareStrings(name, a.strings(), b.strings())
                                       : compareTensors(name, a.numbers(), b.numbers(), tolerances);
    total.elements += row.elements;
    if (total.fault.empty() && !row.fault.empty()) total.fault = item + row.fault;
    if (!row.index.empty() && (total.index.empty() || row.difference.maxAbs > total.difference.maxAbs)) {
      total.index = fmt::format("{}[{}]", item, shown(keyText(a.keys(), row.difference.worst)));
      total.got = row.got;
      total.expected = row.expected;
    }
    total.difference.maxAbs = std::max(total.difference.maxAbs, row.difference.maxAbs);
    total.difference.maxRel = std::max(total.difference.maxRel, row.difference.maxRel);
    total.difference.beyond += row.difference.beyond;
  }
  return total;
}

// Infinity has no number in JSON.
nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(fmt::format("{}", value));
}

}  // namespace

Tolerance Tolerances::of(const Tensor& expected) const {
  Tolerance tolerance = defaultTolerance(expected.type().kind());
  if (steps > 0 && isFloat(expected.type().kind())) {
    const Statistics seen = statisticsOf(expected);
    tolerance.atol = std::max(tolerance.atol, steps * std::max(-seen.min, seen.max));
  }
  if (atol) tolerance.atol = *atol;
  if (rtol) tolerance.rtol = *rtol;
  return tolerance;
}

std::string ComparisonRow::verdict() const {
  if (!fault.empty()) return "DIFFERS: " + fault;
  if (difference.beyond == 0) return "agrees";
  return fmt::format("DIFFERS at {} of {} elements", difference.beyond, elements);
}

std::vector<ComparisonRow> compareValues(const std::string& name, const ModelValue& got, const ModelValue& expected,
                                         const Tolerances& tolerances) {
  if (got.isTensor() && expected.isTensor()) return {compareTensors(name, got.tensor(), expected.tensor(), tolerances)};
  const bool alike = got.none == expected.none && got.isSequence == expected.isSequence &&
                     got.tensors.size() == expected.tensors.size() && got.strings.size() == expected.strings.size() &&
                     got.maps.size() == expected.maps.size();
  std::vector<ComparisonRow> rows;
  if (!alike || got.items() == 0) {
    ComparisonRow& row = rows.emplace_back();
    row.name = name;
    row.type = describe(got);
    if (!alike) row.fault = fmt::format("{}; expected {}", describe(got), describe(expected));
    return rows;
  }
  if (!got.maps.empty()) return {compareMaps(name, got, expected, tolerances)};
  for (size_t i = 0; i < got.tensors.size(); ++i)
    rows.push_back(compareTensors(fmt::format("{}[{}]", name, i), got.tensors[i], expected.tensors[i], tolerances));
  for (size_t i = 0; i < got.strings.size(); ++i)
    rows.push_back(
        compareStrings(got.isSequence ? fmt::format("{}[{}]", name, i) : name, got.strings[i], expected.strings[i]));
  return rows;
}

bool allAgree(const std::vector<ComparisonRow>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const ComparisonRow& row) { return row.agrees(); });
}

std::string tableText(const std::vector<ComparisonRow>& rows) {
  std::vector<std::array<std::string, 8>> cells = {
      {"output", "type", "max abs", "max rel", "worst at", "got", "expected", "verdict"}};
  for (const ComparisonRow& row : rows)
    cells.push_back({shown(row.name), row.type, fmt::format("{:.3g}", row.difference.maxAbs),
                     fmt::format("{:.3g}", row.difference.maxRel), row.index.empty() ? "-" : row.index,
                     row.got.empty() ? "-" : row.got, row.expected.empty() ? "-" : row.expected, row.verdict()});
  std::array<size_t, 8> widths{};
  for (const auto& line : cells)
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string out;
  for (const auto& line : cells) {
    for (size_t i = 0; i + 1 < line.size(); ++i)
      out += i < 2 ? fmt::format("{:<{}}  ", line[i], widths[i]) : fmt::format("{:>{}}  ", line[i], widths[i]);
    out += line.back() + "\n";
  }
  return out;
}

nlohmann::json toJson(const ComparisonRow& row) {
  nlohmann::json json = {{"name", row.name},
                         {"type", row.type},
                         {"agrees", row.agrees()},
                         {"max_abs", number(row.difference.maxAbs)},
                         {"max_rel", number(row.difference.maxRel)},
                         {"beyond", row.difference.beyond},
                         {"elements", row.elements}};
  if (!row.fault.empty()) json["fault"] = row.fault;
  if (!row.index.empty()) json["worst"] = {{"index", row.index}, {"got", row.got}, {"expected", row.expected}};
  return json;
}

}  // namespace aglow::cli
