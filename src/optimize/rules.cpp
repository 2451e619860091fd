// The list of all themes.
#include "optimize/rules.h"

namespace aglow {

std::vector<Rule> joined(std::initializer_list<std::vector<Rule>> tables) {
  std::vector<Rule> all;
  for (const std::vector<Rule>& table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

const std::vector<RuleTheme>& ruleThemes() {
  using Stage = RuleTheme::Stage;
  static const std::vector<RuleTheme> themes = {
      {"Constants", "constant_rules.cpp", Stage::Simplify, constantRules()},
      {"Arithmetic", "arithmetic_rules.cpp", Stage::Simplify, arithmeticRules()},
      {"Gathering of constants", "gathering_rules.cpp", Stage::Simplify, gatheringRules()},
      {"Clamps", "clamp_rules.cpp", Stage::Simplify, clampRules()},
      {"Logic", "logic_rules.cpp", Stage::Simplify, logicRules()},
      {"Transposes", "transpose_rules.cpp", Stage::Simplify, transposeRules()},
      {"Reshapes, expansions and casts", "view_rules.cpp", Stage::Simplify, viewRules()},
      {"Slices and concatenations", "slice_rules.cpp", Stage::Simplify, sliceRules()},
      {"Padding", "pad_rules.cpp", Stage::Simplify, padRules()},
      {"Reductions", "reduce_rules.cpp", Stage::Simplify, reduceRules()},
      {"Affine folding", "affine_rules.cpp", Stage::Simplify, affineRules()},
      {"Activation functions", "activation_rules.cpp", Stage::Simplify, activationRules()},
      {"Quantized values", "quant_rules.cpp", Stage::Compose, quantRules()},
      {"Normalisations", "normalize_rules.cpp", Stage::Compose, normalizeRules()},
      {"Attention", "attention_rules.cpp", Stage::Compose, attentionRules()},
  };
  return themes;
}

std::vector<Rule> rulesOf(RuleTheme::Stage stage) {
  std::vector<Rule> rules;
  for (const RuleTheme& theme : ruleThemes())
    if (theme.stage == stage) rules.insert(rules.end(), theme.rules.begin(), theme.rules.end());
  return rules;
}

}  // namespace aglow
