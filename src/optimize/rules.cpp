// The list of all themes.
#include "optimize/rules.h"

namespace aglow {

std::vector<Rule> joined(std::initializer_list<std::vector<Rule>> tables) {
  std::vector<Rule> all;
  for (const std::vector<Rule>& table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

const std::vector<RuleTheme>& ruleThemes() {
  static const std::vector<RuleTheme> themes = {
      {"Constants", "constant_rules.cpp", constantRules()},
      {"Arithmetic", "arithmetic_rules.cpp", arithmeticRules()},
      {"Gathering of constants", "gathering_rules.cpp", gatheringRules()},
      {"Clamps", "clamp_rules.cpp", clampRules()},
      {"Logic", "logic_rules.cpp", logicRules()},
  };
  return themes;
}

}  // namespace aglow
