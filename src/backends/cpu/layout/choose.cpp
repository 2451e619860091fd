// The choice as a cut: on the source's side of it are nodes on blocked channels, on the sink's side planar ones. A
// value costs once for each direction in which it must be converted, however many readers want it, and a node on blocks
// costs what its empty lanes add. Convolutions are on blocks, but for those that gain little.
#include "backends/cpu/layout/choose.h"

#include <algorithm>

#include "support/min_cut.h"

namespace aglow {

namespace {

// A conversion touches elements in another order than they lie in, which takes longer than computing on some more.
constexpr int64_t kMove = 4;
constexpr int64_t kStart = 1000;  // of any instruction

class Choice {
public:
  Choice(const Function& function, const Blocks& blocks, const ConvForms& forms)
      : function_(function), blocks_(blocks), forms_(forms) {}

  LayoutChoice run() {
    for (const auto& node : function_.nodes())
      if (const ConvForm form = convFormOf(*node, blocks_, forms_); form != ConvForm::None) choose(*node, form);
    if (choice_.convs.empty()) return {};
    for (const auto& node : function_.nodes()) place(*node);
    for (Placeholder* place : function_.module().placeholders()) price(*place);
    for (const auto& node : function_.nodes()) price(*node);
    const std::vector<bool> onBlocks = cut_.sourceSide();
    for (const auto& [node, vertex] : vertices_)
      if (onBlocks[static_cast<size_t>(vertex)])
        choice_.blocked.insert(node);
      else
        choice_.convs.erase(node);
    return std::move(choice_);
  }

private:
  void choose(Node& conv, ConvForm form) {
    choice_.convs.emplace(&conv, form);
    const Value image = imageOf(conv, form);
    if (image != conv.input(0)) readers_[image.node].push_back(readsPlanes(form) ? MinCut::kSink : MinCut::kSource);
    if (givesFilter(form)) readers_[mapOf(conv).node].push_back(MinCut::kSource);
  }

  int64_t blockedElements(const Shape& planar) const { return Shape(blocks_.dims(planar)).elements(); }

  bool canHaveBlocks(Node& node) const {
    const BlockedOp* op = findBlockedOp(node);
    if (op == nullptr || node.predicate() || !Blocks::canHold(node.type()) || !op->fits(node, blocks_)) return false;
    for (int i = 0; i < node.inputCount(); ++i)
      if (node.input(i) && op->follows(node, i) && !Blocks::canHold(node.input(i).type())) return false;
    return true;
  }

  void place(Node& node) {
    if (const auto conv = choice_.convs.find(&node); conv != choice_.convs.end()) {
      if (givesFilter(conv->second)) return;
      const std::optional<int64_t> gain = gainOf(node, conv->second, blocks_);
      const int vertex = gain ? cut_.addNode() : MinCut::kSource;
      vertices_[&node] = vertex;
      if (gain) cut_.addEdge(MinCut::kSource, vertex, *gain);
    } else if (canHaveBlocks(node)) {
      const int vertex = cut_.addNode();
      vertices_[&node] = vertex;
      cut_.addEdge(vertex, MinCut::kSink, blockedElements(node.type().shape()) - node.type().elements());
    }
  }

  int vertexOf(const Node& node) const {
    const auto it = vertices_.find(&node);
    return it == vertices_.end() ? MinCut::kSink : it->second;
  }

  // Whether all who read it read its operand instead.
  bool isPassedBy(const Node& node) const {
    return exchangesChannels(node) && std::all_of(node.uses().begin(), node.uses().end(), [&](const Use& use) {
             const auto conv = choice_.convs.find(use.user);
             return conv != choice_.convs.end() && givesFilter(conv->second);
           });
  }

  // On which side a reader wants its operand: those of the node that makes it, or planar.
  std::optional<int> wantedBy(const Use& use) const {
    Node& user = *use.user;
    if (user.function() != &function_) return std::nullopt;
    if (use.slot == Use::kPredicate) return MinCut::kSink;
    if (const auto conv = choice_.convs.find(&user); conv != choice_.convs.end()) {
      if (use.slot == 0 && imageOf(user, conv->second) != user.input(0)) return std::nullopt;
      if (givesFilter(conv->second)) return std::nullopt;
      return use.slot == 0 && !readsPlanes(conv->second) ? vertexOf(user) : MinCut::kSink;
    }
    if (isPassedBy(user)) return std::nullopt;
    if (leadsToChannelsLast(user) || leadsFromChannelsLast(user) || observesChannels(user)) return std::nullopt;
    const int vertex = vertexOf(user);
    return vertex != MinCut::kSink && findBlockedOp(user)->follows(user, use.slot) ? vertex : MinCut::kSink;
  }

  void price(Node& node) {
    if (node.resultCount() != 1 || !Blocks::canHold(node.type())) return;
    const int maker = vertexOf(node);
    std::vector<int> readers;
    if (const auto it = readers_.find(&node); it != readers_.end()) readers = it->second;
    for (const Use& use : node.uses())
      if (const std::optional<int> wanted = wantedBy(use)) readers.push_back(*wanted);
    if (std::all_of(readers.begin(), readers.end(), [&](int reader) { return reader == maker; })) return;
    const Shape& shape = node.type().shape();
    const bool isView = hasNoPlane(shape) && shape[1] % blocks_.lanesOf(shape[1]) == 0;
    const int64_t cost = isView ? 1 : kStart + kMove * (shape.elements() + blockedElements(shape));
    const int toPlanar = cut_.addNode();
    const int toBlocks = cut_.addNode();
    cut_.addEdge(maker, toPlanar, cost);
    cut_.addEdge(toBlocks, maker, cost);
    for (const int reader : readers) {
      cut_.addEdge(toPlanar, reader, MinCut::kNever);
      cut_.addEdge(reader, toBlocks, MinCut::kNever);
    }
  }

  const Function& function_;
  const Blocks& blocks_;
  ConvForms forms_;
  LayoutChoice choice_;
  MinCut cut_;
  std::unordered_map<const Node*, int> vertices_;
  // Of values that convolutions read in place of their operands.
  std::unordered_map<const Node*, std::vector<int>> readers_;
};

}  // namespace

LayoutChoice chooseLayouts(const Function& function, const Blocks& blocks, const ConvForms& forms) {
  return Choice(function, blocks, forms).run();
}

}  // namespace aglow
