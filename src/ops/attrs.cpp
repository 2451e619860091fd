#include "ops/attrs.h"

namespace aglow {

AttrValue defaultValue(const AttrDef& def) {
  switch (def.kind) {
    case AttrKind::Int:
    case AttrKind::Bool:
      return static_cast<int64_t>(def.number);
    case AttrKind::Float:
      return def.number;
    case AttrKind::Ints:
      return std::vector<int64_t>{};
    case AttrKind::Floats:
      return std::vector<double>{};
    case AttrKind::Enum:
      return std::string(def.choices.substr(0, def.choices.find('|')));
    case AttrKind::Word:
      return std::string(def.choices);
    case AttrKind::Elem:
      break;
  }
  return def.elem;
}

Attrs::Attrs(const OpDef& op) : op_(&op) {
  values_.reserve(static_cast<size_t>(op.attrs.size()));
  for (const AttrDef& def : op.attrs) values_.push_back(defaultValue(def));
}

int Attrs::indexOf(std::string_view name) const {
  for (int i = 0; i < op_->attrs.size(); ++i)
    if (op_->attrs[i].name == name) return i;
  return -1;
}

const AttrValue& Attrs::find(std::string_view name) const {
  const int index = indexOf(name);
  AGLOW_CHECK(index >= 0, std::string(op_->name) + " has no attribute '" + std::string(name) + "'");
  return at(index);
}

Attrs& Attrs::set(std::string_view name, AttrValue value) {
  const int index = indexOf(name);
  AGLOW_CHECK(index >= 0, std::string(op_->name) + " has no attribute '" + std::string(name) + "'");
  AGLOW_CHECK(value.index() == at(index).index(), "attribute '" + std::string(name) + "' is of another kind");
  setAt(index, std::move(value));
  return *this;
}

bool Attrs::isDefault(int index) const { return at(index) == defaultValue(op_->attrs[index]); }

}  // namespace aglow
