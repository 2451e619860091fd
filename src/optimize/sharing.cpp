// Common subexpressions. The first of several equal nodes stays, so the result does not depend on addresses.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "optimize/passes.h"
#include "rewrite/pattern.h"
#include "support/hash.h"

namespace aglow {

namespace {

uint64_t hashOf(Value v) { return mixHash(reinterpret_cast<uintptr_t>(v.node), static_cast<uint64_t>(v.index)); }

uint64_t hashOf(const AttrValue& value) {
  return std::visit(
      [](const auto& v) -> uint64_t {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, ElemKind>)
          return static_cast<uint64_t>(v);
        else if constexpr (std::is_same_v<T, double>)
          return hashBytes(&v, sizeof v);
        else
          return hashBytes(v.data(), v.size() * sizeof(v[0]));
      },
      value);
}

uint64_t hashOf(const Node& node) {
  uint64_t hash = mixHash(static_cast<uint64_t>(node.op()), hashOf(node.predicate()));
  for (const AttrValue& value : node.attrs().values()) hash = mixHash(hash, hashOf(value));
  uint64_t operands = 0;
  for (int i = 0; i < node.inputCount(); ++i) {
    const uint64_t operand = hashOf(node.input(i));
    operands = isCommutative(node.op()) ? operands + operand : mixHash(operands, operand);
  }
  return mixHash(hash, operands);
}

bool sameOperands(const Node& a, const Node& b) {
  if (a.inputs() == b.inputs()) return true;
  return isCommutative(a.op()) && a.input(0) == b.input(1) && a.input(1) == b.input(0);
}

// NaN attributes differ from themselves, which only costs a chance.
bool same(const Node& a, const Node& b) {
  return a.op() == b.op() && a.predicate() == b.predicate() && a.types() == b.types() && a.attrs() == b.attrs() &&
         sameOperands(a, b);
}

int64_t shareNodes(Function& function) {
  // Nodes that read what the function also writes may read different values.
  std::unordered_set<const Node*> written;
  for (const Node* save : function.saves()) written.insert(save->input(1).node);
  const auto readsWritten = [&](const Node& node) {
    const std::vector<Value> inputs = node.inputs();
    return std::any_of(inputs.begin(), inputs.end(), [&](Value v) { return written.contains(v.node); });
  };
  std::unordered_multimap<uint64_t, Node*> known;
  int64_t shared = 0;
  for (Node* node = function.front(); node != nullptr;) {
    Node* next = function.next(node);
    if (node->op() != Op::Save && !readsWritten(*node)) {
      const uint64_t hash = hashOf(*node);
      const auto [first, last] = known.equal_range(hash);
      const auto twin = std::find_if(first, last, [&](const auto& entry) { return same(*entry.second, *node); });
      if (twin == last) {
        known.emplace(hash, node);
      } else {
        for (int i = 0; i < node->resultCount(); ++i) replaceAllUses(node->result(i), twin->second->result(i));
        function.erase(node);
        ++shared;
      }
    }
    node = next;
  }
  return shared;
}

// Both ends of the bytes tell most constants apart; equality reads the rest only of those that are left.
uint64_t quickHash(const Tensor& tensor) {
  const std::string type = tensor.type().text();
  const uint64_t seed = hashBytes(type.data(), type.size());
  const auto bytes = static_cast<size_t>(tensor.bytes());
  const size_t sample = std::min<size_t>(bytes, 128);
  return hashBytes(tensor.data() + (bytes - sample), sample, hashBytes(tensor.data(), sample, seed));
}

int64_t shareConstants(Module& module) {
  std::unordered_multimap<uint64_t, Constant*> known;
  int64_t shared = 0;
  for (Constant* constant : module.constants()) {
    const uint64_t hash = quickHash(constant->tensor());
    const auto [first, last] = known.equal_range(hash);
    const auto twin =
        std::find_if(first, last, [&](const auto& entry) { return entry.second->tensor() == constant->tensor(); });
    if (twin == last) {
      known.emplace(hash, constant);
      continue;
    }
    replaceAllUses(constant->result(), twin->second->result());
    module.eraseStorage(constant);
    ++shared;
  }
  return shared;
}

Result<bool> share(Function& function, PassContext& context) {
  const int64_t shared = shareConstants(function.module()) + shareNodes(function);
  context.count("share", shared);
  return shared > 0;
}

}  // namespace

Pass sharingPass() {
  return {.name = "share",
          .doc = "Makes one of nodes that compute the same, and of constants with the same bytes.",
          .run = share};
}

}  // namespace aglow
