#include "ops/all_ops.h"

#include <fmt/format.h>

#include "ops/attrs.h"
#include "ops/records/activation.h"
#include "ops/records/attention.h"
#include "ops/records/elementwise.h"
#include "ops/records/index.h"
#include "ops/records/linear.h"
#include "ops/records/normalize.h"
#include "ops/records/packed.h"
#include "ops/records/quant.h"
#include "ops/records/recurrent.h"
#include "ops/records/reduce.h"
#include "ops/records/resize.h"
#include "ops/records/shape.h"
#include "ops/records/storage.h"
#include "ops/records/training.h"

namespace aglow {

namespace {

// What a record must have by its kind; a gap is an error of compilation.
consteval bool complete(std::span<const OpDef> family) {
  for (const OpDef& op : family) {
    if (op.name.empty() || op.doc.empty()) return false;
    if (op.kind != OpKind::Storage && op.infer == nullptr) return false;
    if ((op.kind == OpKind::Elementwise) != !op.scalar.empty()) return false;
    if ((op.kind == OpKind::Core || op.kind == OpKind::Target) && op.cost == nullptr) return false;
    if (op.gradient == GradientBy::Formula) return false;
    if (op.gradient != GradientBy::None && op.kind == OpKind::Elementwise) return false;
    if (op.gradient == GradientBy::Lowering && op.kind != OpKind::Composite) return false;
  }
  return true;
}

template <const auto&... kFamilies>
std::vector<const OpDef*> collect() {
  static_assert((complete(kFamilies) && ...),
                "a record lacks its name, doc, type rule, formula or cost, or claims a gradient of another kind");
  std::vector<const OpDef*> all;
  const auto add = [&](std::span<const OpDef> family) {
    for (const OpDef& op : family) all.push_back(&op);
  };
  (add(kFamilies), ...);
  return all;
}

}  // namespace

std::span<const OpDef* const> allOps() {
  using namespace records;
  static const std::vector<const OpDef*> all =
      collect<kStorage, kElementwise, kActivation, kShape, kReduce, kLinear, kIndex, kNormalize, kQuant, kAttention,
              kRecurrent, kResize, kTraining, kPacked>();
  return all;
}

namespace {

Error badNode(std::string message) { return {.code = Code::BadNode, .message = std::move(message)}; }

std::string kindNames(KindSet set) {
  std::string names;
  for (int k = 0; k < kElemKinds; ++k)
    if (contains(set, static_cast<ElemKind>(k)))
      names += (names.empty() ? "" : ", ") + std::string(elemName(static_cast<ElemKind>(k)));
  return names;
}

// The record's operand that stands at a position, with variadic ones repeated.
const OperandDef* operandAt(const OpDef& op, int position) {
  if (position < op.in.size()) return &op.in[position];
  if (!op.in.empty() && op.in[op.in.size() - 1].arity == Arity::Variadic) return &op.in[op.in.size() - 1];
  return nullptr;
}

Status checkOperands(const OpDef& op, std::span<const Type* const> in) {
  std::array<const Type*, 128> bound{};  // the type that settled a letter
  for (int i = 0; i < static_cast<int>(in.size()); ++i) {
    const OperandDef* def = operandAt(op, i);
    if (def == nullptr)
      return badNode(fmt::format("{} takes at most {} operands, got {}", op.name, op.in.size(), in.size()));
    const Type* type = in[static_cast<size_t>(i)];
    if (type == nullptr) {
      if (def->arity == Arity::Optional) continue;
      return badNode(fmt::format("{} needs its operand '{}'", op.name, def->name));
    }
    if (!contains(def->kinds, type->kind()))
      return badNode(fmt::format("operand '{}' of {} cannot be {}; expected one of {}", def->name, op.name,
                                 type->text(), kindNames(def->kinds)));
    if (def->typeVar == 0) continue;
    const Type*& first = bound[static_cast<size_t>(def->typeVar)];
    if (first == nullptr) first = type;
    if (first->kind() != type->kind())
      return badNode(fmt::format("operands of {} must have one element kind: '{}' is {}, expected {}", op.name,
                                 def->name, elemName(type->kind()), elemName(first->kind())));
  }
  for (int i = static_cast<int>(in.size()); i < op.in.size(); ++i)
    if (op.in[i].arity != Arity::Optional)
      return badNode(fmt::format("{} needs its operand '{}' (got {} operands)", op.name, op.in[i].name, in.size()));
  return {};
}

bool hasChoice(std::string_view choices, std::string_view word) {
  for (size_t from = 0; from <= choices.size();) {
    const size_t to = std::min(choices.find('|', from), choices.size());
    if (choices.substr(from, to - from) == word) return true;
    from = to + 1;
  }
  return false;
}

Status checkAttributes(const Attrs& attrs) {
  const OpDef& op = attrs.op();
  for (int i = 0; i < op.attrs.size(); ++i) {
    const AttrDef& def = op.attrs[i];
    if (def.kind == AttrKind::Bool) {
      const int64_t flag = std::get<int64_t>(attrs.at(i));
      if (flag != 0 && flag != 1)
        return badNode(fmt::format("attribute '{}' of {} is {}; expected 0 or 1", def.name, op.name, flag));
    }
    if (def.kind != AttrKind::Enum) continue;
    const std::string& word = std::get<std::string>(attrs.at(i));
    if (!hasChoice(def.choices, word))
      return badNode(
          fmt::format("attribute '{}' of {} is '{}'; expected one of {}", def.name, op.name, word, def.choices));
  }
  return {};
}

}  // namespace

Result<std::vector<Type>> inferTypes(const Attrs& attrs, std::span<const Type* const> in) {
  const OpDef& op = attrs.op();
  AGLOW_OK(checkOperands(op, in));
  AGLOW_OK(checkAttributes(attrs));
  AGLOW_CHECK(op.infer != nullptr, "storage has no type rule");
  AGLOW_TRY(std::vector<Type> types, op.infer({.op = op, .attrs = attrs, .in = in}));
  AGLOW_CHECK(static_cast<int>(types.size()) == op.out.size(), "a type rule gives one type a result");
  return types;
}

}  // namespace aglow
