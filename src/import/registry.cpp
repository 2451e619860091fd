// Which handler imports an operator: a row of a table, or the record that names the operator as its own.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <unordered_map>

#include "import/caffe2/op_tables.h"
#include "import/onnx/op_import.h"
#include "import/onnx/op_tables.h"
#include "import/onnx/own_domain.h"
#include "ops/all_ops.h"
#include "support/suggest.h"

namespace aglow::onnx {

namespace {

const OpDef* recordOf(std::string_view onnxName) {
  static const auto byName = [] {
    std::unordered_map<std::string_view, const OpDef*> map;
    for (const OpDef* def : allOps())
      if (!def->onnx.empty()) map.emplace(def->onnx, def);
    return map;
  }();
  const auto it = byName.find(onnxName);
  return it == byName.end() ? nullptr : it->second;
}

AttrValue attributeOf(const OpImport& c, const AttrDef& def) {
  const AttrValue otherwise = defaultValue(def);
  switch (def.kind) {
    case AttrKind::Int:
    case AttrKind::Bool: {
      const int64_t value = c.integer(def.name, std::get<int64_t>(otherwise));
      return def.name == "axis" ? c.axis(value, c.in(0).rank()) : value;
    }
    case AttrKind::Float:
      return c.real(def.name, std::get<double>(otherwise));
    case AttrKind::Ints:
      return c.ints(def.name);
    case AttrKind::Floats:
      return c.reals(def.name);
    case AttrKind::Enum:
    case AttrKind::Word:
      return c.word(def.name, std::get<std::string>(otherwise));
    case AttrKind::Elem:
      break;
  }
  return c.elem(def.name, std::get<ElemKind>(otherwise));
}

// Before opset 7 the second operand of a binary operator stretched only when asked to, from an axis of the first on.
Value legacyBroadcast(const OpImport& c, Value a, Value b) {
  if (!c.flag("broadcast") || !c.hasAttr("axis")) return b;
  const int64_t axis = c.axis(c.integer("axis"), a.rank());
  std::vector<int64_t> shape = b.shape().dims();
  if (axis + b.rank() > a.rank())
    fail(Code::BadNode, "axis " + std::to_string(axis) + " leaves no room for an operand of shape " + b.shape().text());
  shape.resize(static_cast<size_t>(a.rank() - axis), 1);
  return c.b.reshaped(b, shape);
}

// Operands by position, attributes by name.
void importByRecord(OpImport& c) {
  const OpDef& def = *recordOf(c.node.opType);
  Attrs attrs(def);
  std::vector<Value> operands;
  for (int i = 0; i < c.inputs(); ++i) operands.push_back(c.optional(i));
  if (operands.empty() || !operands.front()) c.in(0);  // names the missing operand
  if (c.version < 7 && operands.size() == 2) operands[1] = legacyBroadcast(c, operands[0], operands[1]);
  for (int i = 0; i < def.attrs.size(); ++i) attrs.setAt(i, attributeOf(c, def.attrs[i]));
  aglow::Node* node = c.b.make(std::move(operands), std::move(attrs));
  for (int i = 0; i < node->resultCount(); ++i) c.out(i, node->result(i));
}

constexpr OpRow kByRecord{"", importByRecord};
constexpr OpRow kOwn{"", importOwnOperator};

bool isOwnOperator(std::string_view name, int64_t version) {
  const std::optional<Op> op = findOp(name);
  return op && opDef(*op).kind != OpKind::Storage && version == kOwnVersion;
}

using TableFunction = std::span<const OpRow>();
constexpr TableFunction* kTables[] = {
#define AGLOW_ENTRY(rows) rows,
    AGLOW_OP_TABLES(AGLOW_ENTRY)
#undef AGLOW_ENTRY
#define AGLOW_ENTRY(rows) caffe2::rows,
        AGLOW_CAFFE2_TABLES(AGLOW_ENTRY)
#undef AGLOW_ENTRY
            nullptr,
};

const std::unordered_multimap<std::string_view, const OpRow*>& rowsByName() {
  static const auto map = [] {
    std::unordered_multimap<std::string_view, const OpRow*> rows;
    for (TableFunction* table : kTables)
      if (table != nullptr)
        for (const OpRow& row : table()) rows.emplace(row.name, &row);
    return rows;
  }();
  return map;
}

// The operators of a domain, in order: gathered once, since a model may name thousands that do not exist.
std::span<const std::string_view> namesIn(std::string_view domain) {
  static const auto map = [] {
    std::map<std::string_view, std::vector<std::string_view>> names;
    for (const auto& [name, row] : rowsByName())
      if (row->handler != nullptr) names[row->domain].push_back(name);
    for (const OpDef* def : allOps())
      if (!def->onnx.empty()) names[""].push_back(def->onnx);
    for (auto& [of, list] : names) std::sort(list.begin(), list.end());
    return names;
  }();
  const auto found = map.find(domain);
  return found == map.end() ? std::span<const std::string_view>() : found->second;
}

}  // namespace

const OpRow* findRow(std::string_view domain, std::string_view name, int64_t version) {
  if (domain == kOwnDomain) return isOwnOperator(name, version) ? &kOwn : nullptr;
  const auto [first, last] = rowsByName().equal_range(name);
  for (auto it = first; it != last; ++it)
    if (it->second->domain == domain && version >= it->second->since && version <= it->second->until) return it->second;
  return domain.empty() && recordOf(name) != nullptr ? &kByRecord : nullptr;
}

std::optional<int64_t> undeclaredVersion(std::string_view domain) {
  static const auto known = [] {
    std::set<std::string_view> domains = {kOwnDomain};
    for (const auto& [name, row] : rowsByName()) domains.insert(row->domain);
    domains.erase("");        // its operators mean other things in other versions
    domains.erase("caffe2");  // no model of ONNX has it
    return domains;
  }();
  return known.contains(domain) ? std::optional<int64_t>(1) : std::nullopt;
}

std::string alternativeTo(std::string_view domain, std::string_view name) {
  const auto spelled = [](std::string_view of) {
    return of.empty() ? "the standard domain" : fmt::format("domain '{}'", of);
  };
  std::vector<std::string_view> domains;
  const auto [first, last] = rowsByName().equal_range(name);
  for (auto it = first; it != last; ++it) {
    const OpRow& row = *it->second;
    if (row.handler == nullptr) continue;
    if (row.domain != domain) {
      if (row.domain != "caffe2") domains.push_back(row.domain);  // no model of ONNX has that one
    } else if (row.until == INT64_MAX) {
      return fmt::format("it is supported from version {} of {} on; convert the model", row.since, spelled(domain));
    } else {
      return fmt::format("it is supported up to version {} of {}; convert the model", row.until, spelled(domain));
    }
  }
  if (!domain.empty() && recordOf(name) != nullptr) domains.emplace_back();
  if (!domains.empty()) return fmt::format("{} has an operator of this name", spelled(domains.front()));
  const std::string meant = didYouMean(name, namesIn(domain));
  return !meant.empty() ? meant
                        : "write it as a function of the model, or export the model with standard operators; "
                          "'aglow ops' lists them";
}

std::vector<std::string> supportedOperators() {
  std::vector<std::string> names;
  for (const auto& [name, row] : rowsByName())
    if (row->handler != nullptr)
      names.push_back(row->domain.empty() ? std::string(name) : std::string(row->domain) + "::" + std::string(name));
  for (const OpDef* def : allOps())
    if (!def->onnx.empty()) names.emplace_back(def->onnx);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace aglow::onnx
