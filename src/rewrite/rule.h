// A rewrite rule: one row of a table, switchable by name, counted, and checked by samples of its own making.
#pragma once

#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "rewrite/pass.h"
#include "rewrite/pattern.h"
#include "support/rng.h"

namespace aglow {

// A place where a rule's pattern fits.
class Match {
public:
  Match(Node& root, const Captures& captures, PassContext& context)
      : root_(&root), captures_(&captures), context_(&context) {}

  Node& root() const { return *root_; }
  // The root's first result.
  Value result() const { return root_->result(); }
  Value operator[](int capture) const { return (*captures_)[capture]; }
  Node& node(int capture) const { return *(*captures_)[capture].node; }
  const Attrs& attrs(int capture) const { return node(capture).attrs(); }
  // Of a captured constant, and of a captured number.
  const Tensor& tensor(int capture) const;
  double number(int capture) const;
  Evaluator& evaluator() const { return context_->evaluator; }

private:
  Node* root_;
  const Captures* captures_;
  PassContext* context_;
};

using Values = std::vector<Value>;

// What of the results a rule keeps.
enum class Keeps : uint8_t {
  Bits,      // every bit
  Rounding,  // numbers up to rounding and the sign of zero; NaN and infinities as they are
  Finite,    // finite numbers up to rounding; the rule's doc says what it relaxes
};

struct Rule {
  std::string_view name;
  std::string_view doc;
  // Element kinds of the root's first result.
  KindSet kinds = ~KindSet{0};
  Pattern pattern;
  // Whether the rule holds here; the next way to match is tried if not. Null: always.
  bool (*condition)(const Match&) = nullptr;
  // The values that replace the root's results, built with a builder that stands before the root. An empty list says
  // that the rule does not apply after all. Results that nobody reads may be left out.
  Values (*build)(const Match&, Builder&) = nullptr;
  // A random graph on which the rule applies; gives the value whose computation the rule changes.
  Value (*sample)(Rng&, Builder&) = nullptr;
  Keeps keeps = Keeps::Bits;
};

// Rules in the order in which they are tried, found by the operator of their root.
class RuleSet {
public:
  explicit RuleSet(std::vector<Rule> rules);

  const std::vector<Rule>& rules() const { return rules_; }
  const std::vector<const Rule*>& at(Op op) const { return byRoot_[static_cast<size_t>(op)]; }

  RuleSet(const RuleSet&) = delete;
  RuleSet& operator=(const RuleSet&) = delete;

private:
  std::vector<Rule> rules_;
  std::vector<std::vector<const Rule*>> byRoot_;
};

// Applies the rules of a set until none fits any more. Nodes that lose their last use on the way are erased, constants
// as well. A set that never settles is an internal error that names the rules still firing.
Result<bool> rewrite(Function& function, const RuleSet& rules, PassContext& context);

// A pass that does so.
Pass rewritePass(std::string name, std::string doc, const RuleSet& rules);

}  // namespace aglow
