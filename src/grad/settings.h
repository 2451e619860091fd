// Names and numbers that callers choose: of losses, of optimizers and of their settings. All that is wrong with them is
// told at once.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/error.h"

namespace aglow {

// A number that a loss or an optimizer takes, the same for all steps.
struct Setting {
  std::string_view name;
  double value = 0;  // unless the caller says otherwise
};

using GivenSettings = std::map<std::string, double, std::less<>>;

namespace grad {

// Collects names that are not there.
class Faults {
public:
  void unknown(std::string_view what, std::string_view name, const std::vector<std::string_view>& names);
  void add(std::string text);
  // Usage with all of them.
  Status status() const;

private:
  std::string text_, hint_;
};

// The row of a table with this name; null, and a fault, where there is none.
template <class Row>
const Row* findRow(const std::vector<Row>& table, std::string_view what, std::string_view name, Faults& faults) {
  std::vector<std::string_view> names;
  for (const Row& row : table) {
    if (row.name == name) return &row;
    names.push_back(row.name);
  }
  faults.unknown(what, name, names);
  return nullptr;
}

// All settings of a row, with what the caller gave for some of them.
using SettingValues = std::map<std::string_view, double>;
SettingValues settingsOf(std::string_view row, std::span<const Setting> known, const GivenSettings& given,
                         Faults& faults);

}  // namespace grad

}  // namespace aglow
