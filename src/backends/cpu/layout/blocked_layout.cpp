// The pass that moves convolutions and what lies between them to blocked channels. Nodes are remade where they stand;
// a value is converted before its first reader that needs it otherwise, once for all readers.
#include <algorithm>
#include <map>
#include <numeric>

#include "backends/cpu/layout/choose.h"
#include "backends/cpu/layout/layout.h"
#include "backends/winograd.h"
#include "graph/op_views.h"

namespace aglow {

namespace {

class BlockRewriter final : public BlockSource {
public:
  BlockRewriter(Function& function, Builder& builder, Blocks form, LayoutChoice choice)
      : BlockSource(builder, form), function_(function), choice_(std::move(choice)) {
    for (const Node* save : function.saves()) written_.insert(save->input(1).node);
  }

  void run() {
    for (Node* node = function_.front(); node != nullptr; node = function_.next(node)) {
      b.before(node).named(node->name());
      const auto conv = choice_.convs.find(node);
      if (conv != choice_.convs.end() && givesFilter(conv->second)) {
        onFilter(*node, tapProducts(*node, conv->second, *this));
      } else if (choice_.blocked.contains(node)) {
        onBlocks(*node);
      } else {
        onPlanes(*node);
      }
    }
    for (auto node = replaced_.rbegin(); node != replaced_.rend(); ++node) function_.erase(*node);
  }

  Value blocked(Value v) override {
    return found(blocked_, v, [&] {
      const Constant* constant = asConstant(v);
      return constant != nullptr ? b.constant(blocks.tensor(constant->tensor())) : blocks.fromPlanar(b, v);
    });
  }

  Value planar(Value v) override {
    if (!isBlocked(v)) return v;
    return found(planar_, v, [&] { return blocks.toPlanar(b, blocked(v), v.shape()); });
  }

private:
  using Forms = std::map<std::pair<const Node*, int>, Value>;

  bool isBlocked(Value v) const { return v && choice_.blocked.contains(v.node); }

  template <class Make>
  Value found(Forms& forms, Value v, const Make& make) {
    const auto it = forms.find({v.node, v.index});
    if (it != forms.end()) return it->second;
    const Value made = make();
    // What a Save has changed must be read again.
    if (!written_.contains(v.node)) forms[{v.node, v.index}] = made;
    return made;
  }

  void onBlocks(Node& node) {
    const auto conv = choice_.convs.find(&node);
    blocked_[{&node, 0}] =
        conv != choice_.convs.end() ? blockedConv(node, conv->second, *this) : findBlockedOp(node)->build(node, *this);
    replaced_.push_back(&node);
  }

  // Whoever exchanges the channels of the node's result wants the filter itself.
  void onFilter(Node& node, Value filter) {
    const auto isConv = [&](const Use& use) { return choice_.convs.contains(use.user); };
    std::vector<Node*> exchanges;
    for (const Use& use : node.uses())
      if (exchangesChannels(*use.user) && std::none_of(use.user->uses().begin(), use.user->uses().end(), isConv))
        exchanges.push_back(use.user);
    for (Node* exchange : exchanges) replaceAllUses(exchange->result(), filter);
    std::vector<int64_t> perm(static_cast<size_t>(filter.rank()));
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[0], perm[1]);
    replaceAllUses(node.result(), b.transposed(filter, perm));
    replaced_.push_back(&node);
  }

  void onPlanes(Node& node) {
    if (leadsToChannelsLast(node) && isBlocked(node.input(0)) && !node.predicate()) {
      replaceAllUses(node.result(), blocks.toChannelsLast(b, blocked(node.input(0)), node.type().shape()));
      replaced_.push_back(&node);
      return;
    }
    if (observesChannels(node) && isBlocked(node.input(2))) {
      const ObserveNode seen(node);
      Node* made =
          b.make({seen.counts(), seen.channels(), blocked(seen.x())}, Attrs(node.attrs()).set("blocked", int64_t{1}));
      for (int i = 0; i < node.resultCount(); ++i) replaceAllUses(node.result(i), made->result(i));
      replaced_.push_back(&node);
      return;
    }
    for (int i = 0; i < node.inputCount(); ++i)
      if (isBlocked(node.input(i))) node.setInput(i, planar(node.input(i)));
    if (isBlocked(node.predicate())) node.setPredicate(planar(node.predicate()));
  }

  Function& function_;
  LayoutChoice choice_;
  std::unordered_set<const Node*> written_;
  Forms blocked_, planar_;
  std::vector<Node*> replaced_;
};

// Sums over the batch of which one number a channel is left keep their axes for now: blocks have a place for channels
// where a vector has none.
void keepReducedAxes(Function& function, Builder& b) {
  for (Node* node = function.front(); node != nullptr;) {
    Node* const next = function.next(node);
    constexpr int kLeastRank = 3;
    const bool reduces = node->op() == Op::Reduce && !node->predicate() && node->input(0).rank() >= kLeastRank &&
                         node->type().rank() == 1 && !node->attrs().flag("keepdims");
    const std::vector<int64_t> axes = reduces ? node->attrs().ints("axes") : std::vector<int64_t>{1};
    if (std::find(axes.begin(), axes.end(), 1) == axes.end()) {
      b.before(node).named(node->name());
      const Value kept = b.make({node->input(0)}, Attrs(node->attrs()).set("keepdims", int64_t{1}))->result();
      replaceAllUses(node->result(), b.reshaped(kept, node->type().shape().dims()));
      function.erase(node);
    }
    node = next;
  }
}

}  // namespace

Pass blockedLayoutPass(const VectorLayout& layout) {
  const Blocks blocks = layout.whole ? Blocks::whole() : Blocks(layout.lanes);
  return {.name = "blocked-layout",
          .doc = "Moves convolutions, and what lies between them, to blocked channels.",
          .run = [blocks, layout](Function& function, PassContext& context) -> Result<bool> {
            const ConvForms forms{
                .winograd = context.enabled(kWinograd), .halves = layout.fastHalves, .matrix = layout.matrix};
            Builder builder(function);
            AGLOW_OK(building([&] {
              keepReducedAxes(function, builder);
              return true;
            }));
            LayoutChoice choice = chooseLayouts(function, blocks, forms);
            const auto convs = static_cast<int64_t>(choice.convs.size());
            AGLOW_TRY(const bool changed, building([&] {
                        BlockRewriter(function, builder, blocks, std::move(choice)).run();
                        return convs > 0;
                      }));
            context.count("blocked-layout", convs);
            return changed;
          }};
}

}  // namespace aglow
