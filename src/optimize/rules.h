// The rules of the optimizer, one table per theme, and the sets in which the pipeline applies them.
#pragma once

#include "rewrite/rule.h"

namespace aglow {

// Constants: folding, numbers as scalars.
std::vector<Rule> constantRules();
// Identities of sums, products, signs and powers.
std::vector<Rule> arithmeticRules();
// Constants gathered in chains of sums and products.
std::vector<Rule> gatheringRules();
// Minimum, maximum, clip and relu.
std::vector<Rule> clampRules();
// Truth values, comparisons and choices.
std::vector<Rule> logicRules();

// A theme's table, with the file that holds it.
struct RuleTheme {
  std::string_view name;
  std::string_view file;
  std::vector<Rule> rules;
};
// All themes, in the order in which their rules are tried.
const std::vector<RuleTheme>& ruleThemes();

// Tables one behind the other.
std::vector<Rule> joined(std::initializer_list<std::vector<Rule>> tables);

}  // namespace aglow
