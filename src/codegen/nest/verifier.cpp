#include "codegen/nest/verifier.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/nest/kinds.h"
#include "codegen/nest/scalars.h"

namespace aglow::nest {

namespace {

template <class... Args>
Error fault(fmt::format_string<Args...> format, Args&&... args) {
  return {.code = Code::BadVerify, .message = fmt::format(format, std::forward<Args>(args)...)};
}

class Verifier {
public:
  explicit Verifier(const Nest& nest)
      : nest_(nest),
        seen_(nest.values.size(), false),
        kept_(nest.rows.size(), false),
        reduced_(nest.reductions.size(), false) {}

  Status run() {
    AGLOW_OK(checkAxes());
    for (size_t i = 0; i < nest_.accesses.size(); ++i) AGLOW_OK(checkAccess(static_cast<int>(i)));
    if (nest_.stages.empty()) return fault("there is no stage");
    for (const Stage& stage : nest_.stages) AGLOW_OK(checkStage(stage));
    if (next_ != static_cast<int>(nest_.values.size())) return fault("values stand outside of all blocks");
    if (!std::all_of(reduced_.begin(), reduced_.end(), [](bool done) { return done; }))
      return fault("a reduction belongs to no stage");
    return {};
  }

private:
  static bool within(int index, size_t count) { return index >= 0 && static_cast<size_t>(index) < count; }

  Status checkAxes() const {
    if (nest_.axes.empty()) return fault("there is no axis");
    bool row = false;
    for (const Axis& axis : nest_.axes) {
      if (axis.extent < 0) return fault("an axis of {} points", axis.extent);
      if (row && axis.role != Axis::Role::Row) return fault("a parallel axis stands inside of a row");
      row = axis.role == Axis::Role::Row;
    }
    if (nest_.chunk < 0 || (nest_.chunk > 0 && row)) return fault("a row with reductions is cut");
    if (!row && !nest_.reductions.empty()) return fault("reductions without a row");
    return {};
  }

  Status checkAccess(int id) const {
    const Access& a = nest_.accesses[static_cast<size_t>(id)];
    const bool inTable = a.table >= 0;
    if (inTable ? !within(a.table, nest_.tables.size()) || a.operand >= 0 : !within(a.operand, nest_.operands.size()))
      return fault("access a{} is of nothing", id);
    const auto table = static_cast<size_t>(a.table), operand = static_cast<size_t>(a.operand);
    const ElemKind kind = inTable ? nest_.tables[table].kind : nest_.operands[operand].kind;
    if (a.kind != kind || isQuantized(kind))
      return fault("access a{} takes {} for {}", id, elemName(kind), elemName(a.kind));
    if (a.strides.size() != nest_.axes.size())
      return fault("access a{} has {} strides for {} axes", id, a.strides.size(), nest_.axes.size());
    int64_t first = a.offset, last = a.offset;
    for (size_t axis = 0; axis < nest_.axes.size(); ++axis) {
      if (nest_.axes[axis].extent == 0) return {};
      (a.strides[axis] < 0 ? first : last) += a.strides[axis] * (nest_.axes[axis].extent - 1);
    }
    const int64_t elements =
        inTable ? static_cast<int64_t>(nest_.tables[table].values.size()) : nest_.operands[operand].elements;
    if (first < 0 || last >= elements)
      return fault("access a{} reaches from {} to {} of {} elements", id, first, last, elements);
    return {};
  }

  Status checkStage(const Stage& stage) {
    AGLOW_OK(checkBlock(stage.row, true));
    AGLOW_OK(checkBlock(stage.each, false));
    for (const int id : stage.reductions) {
      if (!within(id, nest_.reductions.size())) return fault("there is no reduction r{}", id);
      const Reduction& r = nest_.reductions[static_cast<size_t>(id)];
      if (!known(r.value)) return fault("reduction r{} combines a value that is not known", id);
      if (nest_.value(r.value).kind != r.kind || !isComputed(r.kind) || r.kind == ElemKind::Bool)
        return fault("reduction r{} of {} combines {}", id, elemName(r.kind), elemName(nest_.value(r.value).kind));
      if (r.combine != Scalar::Add && r.combine != Scalar::Mul && r.combine != Scalar::Max && r.combine != Scalar::Min)
        return fault("reduction r{} cannot combine by {}", id, scalarInfo(r.combine).name);
      if (r.narrow >= 0 && (r.combine != Scalar::Add || r.kind != ElemKind::Float64 || r.narrow >= stage.each.end ||
                            nest_.value(r.narrow).kind != ElemKind::Float32))
        return fault("reduction r{} cannot combine %{} instead", id, r.narrow);
      if (reduced_[static_cast<size_t>(id)]) return fault("reduction r{} is listed twice", id);
      reduced_[static_cast<size_t>(id)] = true;
    }
    for (const Store& store : stage.each.stores)
      if (store.row >= 0) kept_[static_cast<size_t>(store.row)] = true;
    // What was computed at points is gone.
    for (int id = stage.each.begin; id < stage.each.end; ++id) seen_[static_cast<size_t>(id)] = false;
    return {};
  }

  Status checkBlock(const Block& block, bool row) {
    if (block.begin != next_ || block.end < block.begin || block.end > static_cast<int>(nest_.values.size()))
      return fault("a block holds the values {} to {}", block.begin, block.end);
    next_ = block.end;
    for (int id = block.begin; id < block.end; ++id) {
      AGLOW_OK(checkValue(id, row));
      seen_[static_cast<size_t>(id)] = true;
    }
    for (const Store& store : block.stores) AGLOW_OK(checkStore(store, row));
    return {};
  }

  bool standsForRow(int access) const {
    const std::vector<int64_t>& strides = nest_.accesses[static_cast<size_t>(access)].strides;
    for (size_t axis = 0; axis < nest_.axes.size(); ++axis)
      if (nest_.axes[axis].role == Axis::Role::Row && strides[axis] != 0) return false;
    return true;
  }

  Status checkStore(const Store& store, bool row) const {
    if (!within(store.value, seen_.size()) || !seen_[static_cast<size_t>(store.value)])
      return fault("%{} is stored where it is not known", store.value);
    const ElemKind kind = nest_.value(store.value).kind;
    if (store.row >= 0) {
      if (row || !within(store.row, nest_.rows.size()) || kept_[static_cast<size_t>(store.row)])
        return fault("row k{} is stored where it cannot be", store.row);
      if (nest_.rows[static_cast<size_t>(store.row)] != kind) return fault("row k{} is of another kind", store.row);
      return {};
    }
    if (!within(store.access, nest_.accesses.size())) return fault("%{} is stored nowhere", store.value);
    const Access& a = nest_.accesses[static_cast<size_t>(store.access)];
    if (a.operand < 0 || !writes(nest_.operands[static_cast<size_t>(a.operand)].access))
      return fault("a{} cannot be written", store.access);
    if (a.kind != kind) return fault("%{} of {} is stored as {}", store.value, elemName(kind), elemName(a.kind));
    if (row && !standsForRow(store.access)) return fault("a{} moves along the row", store.access);
    return {};
  }

  Status checkValue(int id, bool row) const {
    const Expr& e = nest_.value(id);
    const auto refused = [&](std::string_view why) { return fault("%{}: {}", id, why); };
    switch (e.op) {
      case Expr::Op::Load:
        if (!within(e.a, nest_.accesses.size())) return refused("there is no such access");
        if (nest_.accesses[static_cast<size_t>(e.a)].kind != e.kind) return refused("the access is of another kind");
        if (row && !standsForRow(e.a)) return refused("the access moves along the row");
        return {};
      case Expr::Op::Number:
        return isQuantized(e.kind) ? Status(refused("a number of a quantized kind")) : Status();
      case Expr::Op::Apply:
        return checkApply(id, e);
      case Expr::Op::Convert:
        if (!known(e.a)) return refused("its operand is not known");
        if (!converts(nest_.value(e.a).kind, e.kind))
          return fault("%{}: {} to {} is not one conversion", id, elemName(nest_.value(e.a).kind), elemName(e.kind));
        return {};
      case Expr::Op::Kept:
        if (row || !within(e.a, nest_.rows.size()) || !kept_[static_cast<size_t>(e.a)])
          return refused("the row is not there");
        if (nest_.rows[static_cast<size_t>(e.a)] != e.kind) return refused("the row is of another kind");
        return {};
      case Expr::Op::Reduced:
        if (!within(e.a, nest_.reductions.size()) || !reduced_[static_cast<size_t>(e.a)])
          return refused("the reduction is not complete");
        if (nest_.reductions[static_cast<size_t>(e.a)].kind != e.kind)
          return refused("the reduction is of another kind");
        return {};
      case Expr::Op::Given:
        return row ? Status(refused("what is given stands at points")) : Status();
      case Expr::Op::Lookup:
        return checkLookup(id, e);
    }
    return refused("no such expression");
  }

  Status checkLookup(int id, const Expr& e) const {
    constexpr size_t kEntries = 256;
    if (!known(e.a)) return fault("%{}: its operand is not known", id);
    if (elemBytes(nest_.value(e.a).kind) != 1 || isFloat(nest_.value(e.a).kind))
      return fault("%{}: {} does not number entries", id, elemName(nest_.value(e.a).kind));
    if (!within(e.b, nest_.tables.size())) return fault("%{}: there is no such table", id);
    const Table& table = nest_.tables[static_cast<size_t>(e.b)];
    if (table.values.size() != kEntries || table.kind != e.kind || elemBytes(e.kind) != 1)
      return fault("%{}: t{} has {} entries of {}", id, e.b, table.values.size(), elemName(table.kind));
    return {};
  }

  bool known(int value) const { return within(value, seen_.size()) && seen_[static_cast<size_t>(value)]; }

  Status checkApply(int id, const Expr& e) const {
    const ScalarInfo& info = scalarInfo(e.scalar);
    const int operands[] = {e.a, e.b, e.c};
    for (int i = 0; i < 3; ++i)
      if (i < info.operands ? !known(operands[i]) : operands[i] >= 0)
        return fault("%{}: operand {} of {} is not known", id, i, info.name);
    if (info.operands == 0) return fault("%{}: {} is not an operation", id, info.name);
    const auto kindOf = [&](int i) { return nest_.value(operands[i]).kind; };
    const bool select = e.scalar == Scalar::Select;
    const bool truth = e.scalar == Scalar::Eq || e.scalar == Scalar::Lt || e.scalar == Scalar::IsNan;
    const bool logic = e.scalar == Scalar::And || e.scalar == Scalar::Or || e.scalar == Scalar::Xor;
    const ElemKind kind = kindOf(select ? 1 : 0);
    const bool ofBools = logic || select || e.scalar == Scalar::Eq;
    bool fits = isComputed(kind) && e.kind == (truth ? ElemKind::Bool : kind) && (ofBools || kind != ElemKind::Bool);
    for (int i = select ? 1 : 0; i < info.operands; ++i) fits &= kindOf(i) == kind;
    if (select) fits &= kindOf(0) == ElemKind::Bool;
    if (info.reals) fits &= isFloat(kind);
    const bool bits = logic || e.scalar == Scalar::Not || e.scalar == Scalar::Shl || e.scalar == Scalar::Shr;
    if (bits) fits &= !isFloat(kind);
    if (!fits) return fault("%{}: {} of {} does not give {}", id, info.name, elemName(kind), elemName(e.kind));
    return {};
  }

  const Nest& nest_;
  std::vector<bool> seen_;  // by value: whether it can be read where the check stands
  std::vector<bool> kept_, reduced_;
  int next_ = 0;
};

}  // namespace

Status verify(const Nest& nest) { return Verifier(nest).run(); }

}  // namespace aglow::nest
