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
// Transposes: merged, and moved down until they meet.
std::vector<Rule> transposeRules();
// Reshapes, expansions and casts.
std::vector<Rule> viewRules();
// Slices, concatenations and lookups at known places.
std::vector<Rule> sliceRules();
// Padding, merged and taken over by windows.
std::vector<Rule> padRules();
// Reductions.
std::vector<Rule> reduceRules();
// Factors and addends folded into weights and biases.
std::vector<Rule> affineRules();
// Activation functions found in arithmetic.
std::vector<Rule> activationRules();
// Softmax and normalisations found in reductions and arithmetic.
std::vector<Rule> normalizeRules();
// Quantized values computed with their integers.
std::vector<Rule> quantRules();
// Attention found in its products.
std::vector<Rule> attentionRules();

// A theme's table, with the file that holds it.
struct RuleTheme {
  // Rules that make composites of their parts stay out of the way of lowering.
  enum class Stage : uint8_t { Simplify, Compose };
  std::string_view name;
  std::string_view file;
  Stage stage;
  std::vector<Rule> rules;
};
// All themes, in the order in which their rules are tried.
const std::vector<RuleTheme>& ruleThemes();
std::vector<Rule> rulesOf(RuleTheme::Stage stage);

// Tables one after the other.
std::vector<Rule> joined(std::initializer_list<std::vector<Rule>> tables);

}  // namespace aglow
