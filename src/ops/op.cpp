#include "ops/op.h"

#include <unordered_map>

#include "ops/all_ops.h"

namespace aglow {

namespace {

// Both ways between a record and its number.
struct Index {
  std::unordered_map<std::string_view, Op> byName;
  std::unordered_map<const OpDef*, Op> byRecord;

  Index() {
    uint16_t number = 0;
    for (const OpDef* def : allOps()) {
      byName.emplace(def->name, static_cast<Op>(number));
      byRecord.emplace(def, static_cast<Op>(number));
      ++number;
    }
  }
};

const Index& theIndex() {
  static const Index index;
  return index;
}

}  // namespace

const OpDef& opDef(Op op) { return *allOps()[static_cast<size_t>(op)]; }

Op opOf(const OpDef& def) {
  const auto it = theIndex().byRecord.find(&def);
  // The code generator may be a module with records of its own.
  return it != theIndex().byRecord.end() ? it->second : theIndex().byName.at(def.name);
}

std::optional<Op> findOp(std::string_view name) {
  const auto it = theIndex().byName.find(name);
  if (it == theIndex().byName.end()) return std::nullopt;
  return it->second;
}

}  // namespace aglow
