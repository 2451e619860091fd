// docs/optimizer.md holds every pass and rule, as the tables have them.
//
//   AGLOW_UPDATE_DOCS=1 build/tests/unit_tests --gtest_filter='OptimizeDocs.*'
//
// writes it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "optimize/optimize.h"
#include "optimize/rules.h"

namespace aglow {
namespace {

std::string_view keepsText(Keeps keeps) {
  switch (keeps) {
    case Keeps::Bits:
      return "bits";
    case Keeps::Rounding:
      return "numbers";
    case Keeps::Finite:
      break;
  }
  return "finite numbers";
}

std::string passTable(const Pipeline& pipeline) {
  std::string out = "\n| pass | what it does |\n|---|---|\n";
  for (const Pass* pass : pipeline.passes()) {
    if (out.find("| `" + pass->name + "` |") == std::string::npos)
      out += fmt::format("| `{}` | {} |\n", pass->name, pass->doc);
  }
  return out;
}

std::string documentation() {
  size_t rules = 0;
  for (const RuleTheme& theme : ruleThemes()) rules += theme.rules.size();
  std::string out = fmt::format(
      "# The graph optimizer\n\nWritten by `tests/unit/optimize_docs_test.cpp` from the tables in `src/optimize`: {} "
      "rules. `--disable NAME` switches a pass or a rule off, `--timing` shows what each took.\n\n"
      "The passes run again and again until none changes anything: once on the model's own operators (phase "
      "`optimize`), "
      "and, without `compose`, once more on what lowering left (phase `optimize-core`).\n",
      rules);
  out += passTable(optimizePipeline());
  out += "\nWhen nothing else changes nodes any more, not even the layout, the phase `predicate` follows.\n";
  out += passTable(predicatePipeline());
  out +=
      "\nA condition of a Where becomes a predicate where half of the work that only its choice needs takes longer "
      "than "
      "a microsecond and the way of the result through memory: what is left alone can be fused. Times are rough ones, "
      "by "
      "the costs of the records: 50 operations or 10 bytes in a nanosecond. One bool for each row along the first axis "
      "is carried through operators that go by rows.\n";
  out +=
      "\nThe column *keeps* says what of the results a rule leaves as it is: every bit; numbers up to rounding and the "
      "sign of zero, with NaN and infinities where they were; or finite numbers up to rounding, with the exceptions "
      "that "
      "the rule names. Every rule is checked on random samples in the interpreter.\n";
  for (const RuleTheme& theme : ruleThemes()) {
    out += fmt::format(
        "\n## {}\n\nIn `src/optimize/{}`, applied by `{}`.\n\n| rule | what it does | keeps |\n|---|---|---|\n",
        theme.name, theme.file, theme.stage == RuleTheme::Stage::Compose ? "compose" : "simplify");
    for (const Rule& rule : theme.rules)
      out += fmt::format("| `{}` | {} | {} |\n", rule.name, rule.doc, keepsText(rule.keeps));
  }
  return out;
}

TEST(OptimizeDocs, HoldEveryRule) {
  const std::string path = std::string(AGLOW_SOURCE_DIR) + "/docs/optimizer.md";
  if (std::getenv("AGLOW_UPDATE_DOCS") != nullptr) std::ofstream(path, std::ios::binary) << documentation();
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), documentation()) << "run with AGLOW_UPDATE_DOCS=1 to write it";
}

}  // namespace
}  // namespace aglow
