// Generation of instructions: every result gets a buffer of its own, which the memory passes then share and shrink.
#include "inst/irgen.h"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "inst/lifetimes.h"
#include "support/quote.h"

namespace aglow {

namespace {

class Generator {
public:
  explicit Generator(const Function& function) : function_(function) { program_.name = function.name(); }

  Result<Program> run(std::span<const Node* const> order) {
    declareStorage();
    program_.instrs.reserve(order.size());
    for (const Node* node : order) AGLOW_OK(emit(*node));
    markLifetimes(program_);
    return std::move(program_);
  }

private:
  // Storage that the function uses, in the module's order and under the module's names, which other functions share.
  void declareStorage() {
    std::unordered_map<const Node*, Access> used;
    for (const auto& node : function_.nodes()) {
      for (int i = Use::kPredicate; i < node->inputCount(); ++i) {
        const Value v = i == Use::kPredicate ? node->predicate() : node->input(i);
        if (!v || !v.node->isStorage()) continue;
        const Access access = node->op() == Op::Save && i == 1 ? Access::Out : Access::In;
        const auto [it, fresh] = used.try_emplace(v.node, access);
        if (!fresh && it->second != access) it->second = Access::InOut;
      }
    }
    for (const auto& storage : function_.module().storage()) {
      const auto it = used.find(storage.get());
      if (it == used.end()) continue;
      Region region{.name = unique(storage->name()), .type = storage->type(), .source = PlaceholderInit{it->second}};
      if (const Constant* constant = asConstant(storage->result()))
        region.source = ConstantInit{constant->tensor()};
      else if (const Placeholder* place = asPlaceholder(storage->result()); place->isState())
        region.source = StateInit{place->initial()};
      regions_[storage.get()] = {program_.add(std::move(region))};
      if (writes(it->second)) written_.insert(regions_[storage.get()].front());
    }
  }

  Status emit(const Node& node) {
    if (node.op() == Op::Save) {
      // What a placeholder holds is where it belongs.
      if (node.input(0) == node.input(1)) return {};
      program_.instrs.push_back({.kind = Instr::Kind::Copy,
                                 .operands = {{region(node.input(1)), Access::Out}, {region(node.input(0))}},
                                 .predicate = region(node.predicate()),
                                 .origin = node.name()});
      return {};
    }
    switch (node.def().kind) {
      case OpKind::View:
        return emitView(node);
      case OpKind::Core:
      case OpKind::Target:
      case OpKind::Elementwise:
      case OpKind::Composite:
        return emitCompute(node);
      case OpKind::Storage:
      case OpKind::Derivative:
        break;
    }
    return Error{.code = Code::Internal,
                 .message = fmt::format("{} is not an operator that computes", node.def().name),
                 .where = fmt::format("node {}", quoted(node.name()))};
  }

  Status emitView(const Node& node) {
    const Extent base = program_.extent(region(node.input(0)));
    const RegionId view =
        program_.add({.name = unique(node.name()), .type = node.type(), .source = ViewOf{base.root, base.begin}});
    regions_[&node] = {view};
    // A view would see what is saved into the placeholder later; the node's value is what was there before.
    if (!written_.contains(base.root)) return {};
    const RegionId copy = program_.add({.name = unique(node.name()), .type = node.type(), .source = Allocated{}});
    program_.instrs.push_back(
        {.kind = Instr::Kind::Copy, .operands = {{copy, Access::Out}, {view, Access::In}}, .origin = node.name()});
    regions_[&node] = {copy};
    return {};
  }

  Status emitCompute(const Node& node) {
    Instr instr{.attrs = node.attrs(), .predicate = region(node.predicate()), .origin = node.name()};
    std::vector<RegionId>& results = regions_[&node];
    for (int i = 0; i < node.resultCount(); ++i) {
      if (mayBeAbsent(node.def(), static_cast<size_t>(i)) && node.useCount(i) == 0) {
        results.push_back(kNoRegion);
        instr.operands.push_back({kNoRegion, Access::Out});
        continue;
      }
      const std::string name = i == 0 ? node.name() : fmt::format("{}.{}", node.name(), node.def().out[i].name);
      results.push_back(program_.add({.name = unique(name), .type = node.type(i), .source = Allocated{}}));
      instr.operands.push_back({results.back(), Access::Out});
    }
    for (int i = 0; i < node.inputCount(); ++i) instr.operands.push_back({region(node.input(i)), Access::In});
    program_.instrs.push_back(std::move(instr));
    return {};
  }

  RegionId region(Value v) const {
    if (!v) return kNoRegion;
    const auto it = regions_.find(v.node);
    AGLOW_CHECK(it != regions_.end(), fmt::format("'{}' is used before it is computed", v.node->name()));
    return it->second[static_cast<size_t>(v.index)];
  }

  // Storage and nodes have names of their own; regions share one space.
  std::string unique(const std::string& wanted) {
    if (names_.insert(wanted).second) return wanted;
    int& suffix = suffixes_[wanted];
    while (true)
      if (std::string name = fmt::format("{}.{}", wanted, ++suffix); names_.insert(name).second) return name;
  }

  const Function& function_;
  Program program_;
  std::unordered_map<const Node*, std::vector<RegionId>> regions_;  // of each node's results
  std::unordered_set<RegionId> written_;                            // placeholders, by the function
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, int> suffixes_;
};

}  // namespace

Result<Program> generate(const Function& function, std::span<const Node* const> order) {
  AGLOW_CHECK(order.size() == function.size(), "the order lists every node of the function once");
  return Generator(function).run(order);
}

Result<Program> generate(const Function& function) {
  std::vector<const Node*> order;
  order.reserve(function.size());
  for (const auto& node : function.nodes()) order.push_back(node.get());
  return generate(function, order);
}

}  // namespace aglow
