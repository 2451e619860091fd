#include "optimize/recompute.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ops/work.h"
#include "support/sizes.h"

namespace aglow {

namespace {

// Not reductions: what they give is small, and costs much.
bool mayRepeat(const Node& node) {
  return node.resultCount() == 1 && node.op() != Op::Save && node.op() != Op::Observe && !node.predicate() &&
         node.op() != Op::Reduce && node.op() != Op::Scan;
}

bool isView(const Node& node) { return node.def().kind == OpKind::View; }

// The node whose buffer holds a value, behind all views; null for storage.
Node* holder(Value v) {
  while (!v.node->isStorage() && isView(*v.node)) v = v.node->input(0);
  return v.node->isStorage() ? nullptr : v.node;
}

double timeOf(const Node& node) {
  std::vector<const Type*> in;
  double bytes = static_cast<double>(node.type().bytes());
  for (const Value v : node.inputs()) {
    in.push_back(v ? &v.type() : nullptr);
    if (v) bytes += static_cast<double>(v.type().bytes());
  }
  return roughTime(flopsOf(node.attrs(), in, node.type()), bytes);
}

// Where nodes stand, and from where to where their buffers are alive.
struct Lives {
  struct Life {
    int64_t first = 0, last = 0;
    double bytes = 0;
    std::vector<int64_t> uses;  // ascending, once or more
  };

  explicit Lives(const Function& function) {
    for (const auto& node : function.nodes()) {
      place[node.get()] = std::ssize(nodes);
      nodes.push_back(node.get());
    }
    lives.resize(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      const Node& node = *nodes[i];
      Life& life = lives[i];
      life.first = life.last = static_cast<int64_t>(i);
      if (!isView(node) && node.op() != Op::Save)
        for (const Type& type : node.types())
          life.bytes += static_cast<double>(alignUp(type.bytes(), Tensor::kAlignment));
      for (int k = Use::kPredicate; k < node.inputCount(); ++k) {
        const Value v = k == Use::kPredicate ? node.predicate() : node.input(k);
        const Node* from = v ? holder(v) : nullptr;
        if (node.op() == Op::Save && k == 1) saved.try_emplace(v.node, static_cast<int64_t>(i));
        if (from == nullptr) continue;
        Life& held = lives[static_cast<size_t>(place.at(from))];
        held.last = static_cast<int64_t>(i);
        if (node.op() == Op::Save) held.bytes = 0;  // it is computed in its placeholder
        // Views read nothing by themselves.
        if (!isView(node)) held.uses.push_back(static_cast<int64_t>(i));
      }
    }
    std::vector<double> change(nodes.size() + 1);
    for (const Life& life : lives) {
      change[static_cast<size_t>(life.first)] += life.bytes;
      change[static_cast<size_t>(life.last) + 1] -= life.bytes;
    }
    double alive = 0;
    for (size_t i = 0; i < nodes.size(); ++i) {
      alive += change[i];
      if (alive > peak) {
        peak = alive;
        peakAt = static_cast<int64_t>(i);
      }
    }
  }

  const Life& of(const Node* node) const { return lives[static_cast<size_t>(place.at(node))]; }

  std::vector<Node*> nodes;
  std::unordered_map<const Node*, int64_t> place;
  std::vector<Life> lives;
  std::unordered_map<const Node*, int64_t> saved;  // where placeholders get another value
  double peak = 0;
  int64_t peakAt = 0;
};

class Recomputing {
public:
  explicit Recomputing(Function& function) : function_(function) {}

  int64_t run(double target) {
    double least = Lives(function_).peak;
    // A round that does not help at once may make the next one help.
    constexpr int kPatience = 20;
    for (int waited = 0; waited < kPatience; ++waited) {
      const Lives lives(function_);
      if (lives.peak < least) waited = 0;
      least = std::min(least, lives.peak);
      if (lives.peak <= target || !improve(lives)) break;
    }
    return static_cast<int64_t>(std::min(Lives(function_).peak, 0x1p62));
  }

private:
  // Nodes to be computed again for the uses of a value from some place on.
  struct Repeat {
    std::vector<Node*> nodes;  // operands first; the value itself is the last
    int64_t at = 0;            // before this node
    double bytes = 0;          // that are no longer kept while most is alive
    double time = 0;
  };

  bool improve(const Lives& lives) {
    std::optional<Repeat> best;
    for (Node* node : lives.nodes) {
      const Lives::Life& life = lives.of(node);
      if (life.bytes == 0 || life.first >= lives.peakAt || life.last <= lives.peakAt || !mayRepeat(*node)) continue;
      const auto late = std::upper_bound(life.uses.begin(), life.uses.end(), lives.peakAt);
      // Whatever is read at the peak is there anyway.
      if (late == life.uses.end() || (late != life.uses.begin() && *(late - 1) == lives.peakAt)) continue;
      Repeat repeat{.at = *late, .bytes = life.bytes};
      std::unordered_set<const Node*> seen;
      if (!collect(*node, lives, repeat, seen, 0) || repeat.bytes <= 0) continue;
      // What is needed again at once is not worth it, or it would be computed again and again.
      const int64_t since = late == life.uses.begin() ? life.first : *(late - 1);
      if (repeat.at - since <= 2 * std::ssize(repeat.nodes)) continue;
      if (!best || repeat.bytes * best->time > best->bytes * repeat.time) best = std::move(repeat);
    }
    if (!best) return false;
    apply(*best, lives);
    return true;
  }

  // A node and those of its operands that are not alive any more; others are kept longer.
  static bool collect(Node& node, const Lives& lives, Repeat& repeat, std::unordered_set<const Node*>& seen,
                      int depth) {
    constexpr int kMostDepth = 128;
    if (!seen.insert(&node).second) return true;
    for (const Value v : node.inputs()) {
      if (!v) continue;
      if (v.node->isStorage()) {
        const auto it = lives.saved.find(v.node);
        if (it != lives.saved.end() && it->second < repeat.at) return false;
        continue;
      }
      if (isView(*v.node)) {
        if (!collect(*v.node, lives, repeat, seen, depth)) return false;
        continue;
      }
      const Lives::Life& life = lives.of(v.node);
      if (life.last >= repeat.at || seen.contains(v.node)) continue;
      if (mayRepeat(*v.node) && depth < kMostDepth) {
        if (!collect(*v.node, lives, repeat, seen, depth + 1)) return false;
        continue;
      }
      if (life.last < lives.peakAt) repeat.bytes -= life.bytes;
      if (repeat.bytes <= 0) return false;
    }
    repeat.nodes.push_back(&node);
    repeat.time += isView(node) ? 0 : timeOf(node);
    return true;
  }

  void apply(const Repeat& repeat, const Lives& lives) {
    Node* before = lives.nodes[static_cast<size_t>(repeat.at)];
    std::unordered_map<const Node*, Node*> copies;
    for (const Node* node : repeat.nodes) {
      std::vector<Value> inputs = node->inputs();
      for (Value& v : inputs)
        if (const auto it = v ? copies.find(v.node) : copies.end(); it != copies.end()) v.node = it->second;
      copies[node] = cloneNode(*node, inputs, {}, function_, before);
    }
    redirect(repeat.nodes.back(), copies.at(repeat.nodes.back()), repeat.at, lives);
    eraseDead(repeat.nodes.back());
  }

  // What was computed only for late uses.
  void eraseDead(Node* node) {
    std::vector<Node*> work = {node};
    while (!work.empty()) {
      Node* one = work.back();
      work.pop_back();
      if (one->isStorage() || !one->uses().empty()) continue;
      const std::vector<Value> inputs = one->inputs();
      function_.erase(one);
      for (const Value v : inputs)
        if (v && std::find(work.begin(), work.end(), v.node) == work.end()) work.push_back(v.node);
    }
  }

  // Late uses of a value read its copy; late uses of its views, of which some may be early, read views of the copy.
  void redirect(Node* from, Node* to, int64_t at, const Lives& lives) {
    const std::vector<Use> uses = from->uses();
    for (const Use& use : uses) {
      const auto it = lives.place.find(use.user);
      if (it == lives.place.end()) continue;  // a copy, or another function's
      if (isView(*use.user)) {
        Node* view = cloneNode(*use.user, {to->result()}, {}, function_, function_.next(to));
        redirect(use.user, view, at, lives);
        if (view->uses().empty()) function_.erase(view);
        if (use.user->uses().empty()) function_.erase(use.user);
        continue;
      }
      if (it->second < at) continue;
      if (use.slot == Use::kPredicate)
        use.user->setPredicate(to->result());
      else
        use.user->setInput(use.slot, to->result());
    }
  }

  Function& function_;
};

}  // namespace

int64_t recompute(Function& function, int64_t target) { return Recomputing(function).run(static_cast<double>(target)); }

}  // namespace aglow
