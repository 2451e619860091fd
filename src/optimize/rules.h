// The rules of the optimizer, one table per theme, and the sets in which the pipeline applies them.
#pragma once

#include "rewrite/rule.h"

namespace aglow {

std::vector<Rule> constantRules();

// The tables of every theme with its name and file, for documentation and tests.
struct RuleTheme {
  std::string_view name;
  std::string_view file;
  const std::vector<Rule>* rules;
};
const std::vector<RuleTheme>& ruleThemes();

}  // namespace aglow
