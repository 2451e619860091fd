// Two graphs side by side, and one graph folded into a number. Both look at a node through the same eyes: its own part
// as text, its operands by the order in which nodes and storage are met.
#include "graph/equality.h"

#include <fmt/format.h>

#include <unordered_map>

#include "graph/syntax.h"
#include "graph/text.h"
#include "support/hash.h"
#include "support/quote.h"

namespace aglow {

namespace {

// What a node says of itself, without its operands.
std::string ownPart(const Node& node, Names names) {
  std::string out = fmt::format("{}{}", node.def().name, printAttrs(node.attrs()));
  for (const Type& type : node.types()) out += " " + type.text();
  if (names == Names::Compare) out += " " + printName("", node.name());
  return out;
}

// Operands and predicate; absent operands at the end are as good as none.
std::vector<Value> operandsOf(const Node& node) {
  std::vector<Value> values = node.inputs();
  while (!values.empty() && !values.back()) values.pop_back();
  values.push_back(node.predicate());
  return values;
}

// Pairs of nodes that stand for each other, one to one.
class Comparison {
public:
  explicit Comparison(Names names) : names_(names) {}

  std::string storage(const Node& a, const Node& b) {
    const auto [forth, fresh] = pairs_.try_emplace(&a, &b);
    if (!fresh) return forth->second == &b ? "" : differ("storage", a, b);
    if (!reverse_.try_emplace(&b, &a).second || ownPart(a, names_) != ownPart(b, names_))
      return differ("storage", a, b);
    const Tensor *left = initialBytes(a), *right = initialBytes(b);
    if ((left == nullptr) != (right == nullptr)) return differ("storage", a, b);
    return left == nullptr || *left == *right ? "" : differ("bytes", a, b);
  }

  std::string functions(const Function& a, const Function& b) {
    if (a.size() != b.size()) return fmt::format("{} nodes against {}", a.size(), b.size());
    auto other = b.nodes().begin();
    for (const auto& node : a.nodes()) {
      if (std::string found = nodes(*node, **other); !found.empty()) return found;
      pairs_.emplace(node.get(), other->get());
      ++other;
    }
    return "";
  }

private:
  static std::string differ(std::string_view what, const Node& a, const Node& b) {
    return fmt::format("{} differ: {} against {}", what, print(a), print(b));
  }

  std::string nodes(const Node& a, const Node& b) {
    if (ownPart(a, names_) != ownPart(b, names_)) return differ("nodes", a, b);
    const std::vector<Value> left = operandsOf(a);
    const std::vector<Value> right = operandsOf(b);
    if (left.size() != right.size()) return differ("operands", a, b);
    for (size_t i = 0; i < left.size(); ++i) {
      if (!left[i] && !right[i]) continue;
      if (!left[i] || !right[i] || left[i].index != right[i].index) return differ("operands", a, b);
      const Node* x = left[i].node;
      const Node* y = right[i].node;
      if (x->isStorage() && y->isStorage()) {
        if (std::string found = storage(*x, *y); !found.empty()) return found;
      } else if (const auto it = pairs_.find(x); it == pairs_.end() || it->second != y) {
        return differ("operands", a, b);
      }
    }
    return "";
  }

  Names names_;
  std::unordered_map<const Node*, const Node*> pairs_;
  std::unordered_map<const Node*, const Node*> reverse_;  // of storage; nodes are paired by their place
};

class Hasher {
public:
  explicit Hasher(Names names) : names_(names) {}

  void text(std::string_view bytes) { hash_ = hashBytes(bytes.data(), bytes.size(), hash_); }

  void storage(const Node& node) {
    if (!numbers_.try_emplace(&node, numbers_.size()).second) return;
    text(ownPart(node, names_));
    if (const Tensor* bytes = initialBytes(node)) hash_ = mixHash(hash_, bytes->hash());
  }

  void function(const Function& function) {
    hash_ = mixHash(hash_, function.size());
    for (const auto& node : function.nodes()) {
      for (const Value value : operandsOf(*node)) {
        if (value && value.node->isStorage()) storage(*value.node);
        hash_ = mixHash(hash_, value ? numbers_.at(value.node) + 1 : 0);
        hash_ = mixHash(hash_, static_cast<uint64_t>(value.index));
      }
      text(ownPart(*node, names_));
      numbers_.emplace(node.get(), numbers_.size());
    }
  }

  uint64_t value() const { return hash_; }

private:
  Names names_;
  uint64_t hash_ = 0;
  std::unordered_map<const Node*, uint64_t> numbers_;
};

}  // namespace

std::string difference(const Function& a, const Function& b, Names names) { return Comparison(names).functions(a, b); }

std::string difference(const Module& a, const Module& b, Names names) {
  if (a.storage().size() != b.storage().size())
    return fmt::format("{} constants and placeholders against {}", a.storage().size(), b.storage().size());
  if (a.functions().size() != b.functions().size())
    return fmt::format("{} functions against {}", a.functions().size(), b.functions().size());
  Comparison comparison(names);
  auto other = b.storage().begin();
  for (const auto& node : a.storage())
    if (std::string found = comparison.storage(*node, **other++); !found.empty()) return found;
  for (size_t i = 0; i < a.functions().size(); ++i) {
    const Function& left = *a.functions()[i];
    const Function& right = *b.functions()[i];
    if (names == Names::Compare && left.name() != right.name())
      return fmt::format("function {} against {}", quoted(left.name()), quoted(right.name()));
    if (std::string found = comparison.functions(left, right); !found.empty())
      return fmt::format("function {}: {}", quoted(left.name()), found);
  }
  return "";
}

uint64_t structuralHash(const Function& function, Names names) {
  Hasher hasher(names);
  hasher.function(function);
  return hasher.value();
}

uint64_t structuralHash(const Module& module, Names names) {
  Hasher hasher(names);
  for (const auto& node : module.storage()) hasher.storage(*node);
  for (const auto& function : module.functions()) {
    if (names == Names::Compare) hasher.text(function->name());
    hasher.function(*function);
  }
  return hasher.value();
}

}  // namespace aglow
