// The choice as a cut: on the source's side of it are operators on integers, on the sink's side those on floats.
// Products take integers and can give either, as can what is computed with their results. All others that may take part
// give what they take. A value costs its bytes once for each direction in which it must be converted, however many
// readers want it so; between equals integers win, which are less to move.
#include "quant/conversions.h"

#include <optional>

#include "support/min_cut.h"

namespace aglow::quant {

namespace {

class Placement {
public:
  Placement(const Function& function, const Islands& possible) : function_(function), possible_(possible) {}

  std::unordered_set<const Node*> run() {
    for (const auto& node : function_.nodes()) place(*node);
    for (Placeholder* input : function_.module().placeholders()) price(input->result());
    for (const auto& node : function_.nodes())
      for (int i = 0; i < node->resultCount(); ++i) price(node->result(i));
    const std::vector<bool> inIntegers = cut_.sourceSide();
    std::unordered_set<const Node*> floats;
    for (const auto& [node, vertex] : takes_)
      if (!inIntegers[static_cast<size_t>(vertex)]) floats.insert(node);
    return floats;
  }

private:
  void place(const Node& node) {
    if (!possible_.members.contains(&node)) return;
    const Node* before = possible_.computedWith(node);
    const Role role = roleOf(node);
    const bool product = role == Role::Product || role == Role::Pair;
    if (product || free_.contains(before)) {
      free_.insert(&node);
      gives_[&node] = cut_.addNode();
    } else {
      gives_[&node] = before != nullptr ? sideOf(gives_, *before) : cut_.addNode();
    }
    if (before == nullptr) takes_[&node] = product ? MinCut::kSource : gives_[&node];
  }

  using Sides = std::unordered_map<const Node*, int>;
  static int sideOf(const Sides& sides, const Node& node) {
    const auto it = sides.find(&node);
    return it == sides.end() ? MinCut::kSink : it->second;
  }

  // On which side a reader wants its operand; nothing where it takes it before it is rounded.
  std::optional<int> wantedBy(const Use& use) const {
    const Node& user = *use.user;
    if (user.function() != &function_ || possible_.computedWith(user) != nullptr) return std::nullopt;
    if (use.slot == Use::kPredicate || use.slot >= dataOperands(user)) return MinCut::kSink;
    return sideOf(takes_, user);
  }

  void price(Value value) {
    constexpr int64_t kBytes = sizeof(float) + sizeof(uint8_t);
    if (value.kind() != ElemKind::Float32) return;
    const int maker = sideOf(gives_, *value.node), toFloats = cut_.addNode(), toIntegers = cut_.addNode();
    cut_.addEdge(maker, toFloats, kBytes * value.type().elements());
    cut_.addEdge(toIntegers, maker, kBytes * value.type().elements());
    for (const Use& use : value.node->uses()) {
      const Value used = use.slot == Use::kPredicate ? use.user->predicate() : use.user->input(use.slot);
      const std::optional<int> reader = used == value ? wantedBy(use) : std::nullopt;
      if (!reader) continue;
      cut_.addEdge(toFloats, *reader, MinCut::kNever);
      cut_.addEdge(*reader, toIntegers, MinCut::kNever);
    }
  }

  const Function& function_;
  const Islands& possible_;
  MinCut cut_;
  Sides takes_, gives_;
  std::unordered_set<const Node*> free_;  // products, and what is computed with their results
};

}  // namespace

std::unordered_set<const Node*> cheaperInFloats(const Function& function, const Islands& possible) {
  return Placement(function, possible).run();
}

}  // namespace aglow::quant
