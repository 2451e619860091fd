#include "check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reference.h"

namespace aglow::differential {

namespace {

bool meetsOddValues(const Case& c, const Reference& reference) {
  const auto odd = [](const Tensor& t) {
    if (!isFloat(t.type().kind())) return false;
    const std::vector<double> values = t.doubles();
    return std::any_of(values.begin(), values.end(), [](double v) { return !std::isfinite(v); });
  };
  for (const auto& [name, value] : c.inputs)
    if (odd(value)) return true;
  for (const Constant* constant : c.module->constants())
    if (odd(constant->tensor())) return true;
  for (const std::vector<Tensor>& results : reference.values())
    if (std::any_of(results.begin(), results.end(), odd)) return true;
  return false;
}

// The difference of one engine in words, or nothing.
std::string differenceOf(const Case& c, Reference& reference, const Engine& engine) {
  const auto outputs = run(c, engine);
  if (!outputs.ok()) return outputs.error().text();
  for (size_t i = 0; i < reference.names().size(); ++i) {
    const std::string& name = reference.names()[i];
    const auto got = outputs->find(name);
    if (got == outputs->end()) return "output '" + name + "' is missing";
    if (std::string found = reference.difference(i, got->second); !found.empty())
      return fmt::format("output '{}': {}", name, found);
  }
  return {};
}

Verdict checkOne(const Case& c, Result<Reference>& reference, const Engine& engine) {
  if (!reference.ok()) {
    // What nobody needs may go although it would fail: then there are outputs.
    const auto outputs = run(c, engine);
    if (outputs.ok() || outputs.error().code == reference.error().code) return {.kind = Verdict::Kind::Fails};
    return {.kind = Verdict::Kind::Differ,
            .engine = engine.name,
            .what = fmt::format("expected {}, got {}", reference.error().text(), outputs.error().text())};
  }
  const std::string found = differenceOf(c, *reference, engine);
  if (found.empty()) return {};
  if (meetsOddValues(c, *reference) && differenceOf(c, *reference, withoutRelaxedRules(engine)).empty())
    return {.kind = Verdict::Kind::Relaxed, .engine = engine.name, .what = found};
  return {.kind = Verdict::Kind::Differ, .engine = engine.name, .what = found};
}

bool differs(const Case& c, const Engine& engine) { return check(c, {engine}).kind == Verdict::Kind::Differ; }

Node* nodeAt(const Case& c, size_t index) {
  auto it = c.function().nodes().begin();
  std::advance(it, static_cast<std::ptrdiff_t>(index));
  return it->get();
}

void dropNode(Case& c, size_t index) {
  Node* node = nodeAt(c, index);
  if (node->op() == Op::Save) c.function().erase(node);
}

// Gives the results of a node as inputs, with the values that the reference computes.
bool cutBehind(Case& c, size_t index) {
  Result<Reference> reference = Reference::of(c);
  Node* node = nodeAt(c, index);
  if (!reference.ok() || node->op() == Op::Save) return false;
  const std::vector<Tensor> values = reference->values()[index];
  for (int i = 0; i < node->resultCount(); ++i) {
    if (node->useCount(i) == 0) continue;
    Placeholder* input = c.module->addPlaceholder("cut", node->type(i));
    c.inputs.emplace(input->name(), values[static_cast<size_t>(i)]);
    replaceAllUses(node->result(i), input->result());
  }
  c.function().erase(node);
  return true;
}

// An operand of the result's type takes the node's place.
bool skipNode(Case& c, size_t index) {
  Node* node = nodeAt(c, index);
  if (node->resultCount() != 1) return false;
  for (const Value v : node->inputs())
    if (v && v.type() == node->type()) {
      replaceAllUses(node->result(), v);
      c.function().erase(node);
      return true;
    }
  return false;
}

}  // namespace

Verdict check(const Case& c, const std::vector<Engine>& engines) {
  Verdict worst;
  Result<Reference> reference = Reference::of(c);
  for (const Engine& engine : engines) {
    Verdict verdict = checkOne(c, reference, engine);
    if (verdict.kind == Verdict::Kind::Differ) return verdict;
    if (verdict.kind != Verdict::Kind::Agree) worst = std::move(verdict);
  }
  return worst;
}

Case shrunk(Case c, const Engine& engine) {
  using Step = bool (*)(Case&, size_t);
  constexpr Step kSteps[] = {
      [](Case& s, size_t i) {
        const bool save = nodeAt(s, i)->op() == Op::Save && s.function().saves().size() > 1;
        if (save) dropNode(s, i);
        return save;
      },
      skipNode,
      cutBehind,
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const Step step : kSteps)
      for (size_t i = 0; i < c.function().size();) {
        Case smaller = cloned(c);
        if (!step(smaller, i)) {
          ++i;
          continue;
        }
        dropDeadNodes(smaller);
        if (!smaller.function().saves().empty() && differs(smaller, engine)) {
          c = std::move(smaller);
          changed = true;
        } else {
          ++i;
        }
      }
  }
  return c;
}

}  // namespace aglow::differential
