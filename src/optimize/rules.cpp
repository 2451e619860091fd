// All themes, in the order in which their rules are tried.
#include "optimize/rules.h"

namespace aglow {

const std::vector<RuleTheme>& ruleThemes() {
  static const std::vector<Rule> constants = constantRules();
  static const std::vector<RuleTheme> themes = {
      {"constants", "constant_rules.cpp", &constants},
  };
  return themes;
}

}  // namespace aglow
