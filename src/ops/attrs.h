// The attribute values of one node or instruction, in the order of its
// operator's record.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ops/op_def.h"

namespace aglow {

// Int and Bool as int64_t; Enum and Word as string.
using AttrValue = std::variant<int64_t, double, std::vector<int64_t>, std::vector<double>, std::string, ElemKind>;

class Attrs {
public:
  Attrs() = default;
  explicit Attrs(const OpDef& op);  // all defaults

  const OpDef& op() const { return *op_; }
  const std::vector<AttrValue>& values() const { return values_; }
  const AttrValue& at(int index) const { return values_[static_cast<size_t>(index)]; }
  // By name; internal error when the record has no such attribute of that kind.
  int64_t integer(std::string_view name) const { return std::get<int64_t>(find(name)); }
  bool flag(std::string_view name) const { return integer(name) != 0; }
  double real(std::string_view name) const { return std::get<double>(find(name)); }
  const std::vector<int64_t>& ints(std::string_view name) const { return std::get<std::vector<int64_t>>(find(name)); }
  const std::vector<double>& reals(std::string_view name) const { return std::get<std::vector<double>>(find(name)); }
  const std::string& word(std::string_view name) const { return std::get<std::string>(find(name)); }
  ElemKind elem(std::string_view name) const { return std::get<ElemKind>(find(name)); }

  // Index in the record, or -1.
  int indexOf(std::string_view name) const;
  Attrs& set(std::string_view name, AttrValue value);
  void setAt(int index, AttrValue value) { values_[static_cast<size_t>(index)] = std::move(value); }
  bool isDefault(int index) const;

  bool operator==(const Attrs&) const = default;

private:
  const AttrValue& find(std::string_view name) const;

  const OpDef* op_ = nullptr;
  std::vector<AttrValue> values_;
};

// The default of one attribute, as its record says.
AttrValue defaultValue(const AttrDef& def);

}  // namespace aglow
