// Values are computed for runs of points along the last axis. A run of values lies in memory as elements of its kind
// do.
#include "codegen/nest/evaluate.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "reference/arithmetic.h"
#include "reference/scalars.h"
#include "support/check.h"

namespace aglow::nest {

namespace {

constexpr int64_t kRun = 256;
constexpr int64_t kParts = 16;  // of a reduction, so that long sums lose no more than those of vectors

// Calls f with a number of the kind's C++ type; not for bool.
template <class F>
void inKind(ElemKind kind, F&& f) {
  switch (kind) {
    case ElemKind::Float32:
      return f(float{});
    case ElemKind::Float64:
      return f(double{});
    case ElemKind::Int32:
      return f(int32_t{});
    case ElemKind::UInt32:
      return f(uint32_t{});
    case ElemKind::Int64:
      return f(int64_t{});
    case ElemKind::UInt64:
      return f(uint64_t{});
    default:
      AGLOW_CHECK(false, "a kind that is not computed in");
  }
}

class Evaluation {
public:
  Evaluation(const Nest& nest, std::span<std::byte* const> operands, const std::byte* given)
      : nest_(nest),
        operands_(operands),
        given_(given),
        outer_(nest.axes.size() - static_cast<size_t>(nest.innerAxes())),
        values_(nest.values.size()),
        offsets_(nest.accesses.size()),
        reductions_(nest.reductions.size()) {
    for (const Table& table : nest.tables) {
      tables_.emplace_back(table.values.size() * static_cast<size_t>(elemBytes(table.kind)));
      narrow(table.kind, table.values.data(), static_cast<int64_t>(table.values.size()), tables_.back().data(), 0);
    }
    for (const ElemKind kind : nest.rows) rows_.emplace_back(static_cast<size_t>(nest.rowLength() * elemBytes(kind)));
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i].resize(static_cast<size_t>(kRun * elemBytes(nest.values[i].kind)));
      if (nest.values[i].op == Expr::Op::Number) fill(i, nest.values[i].kind, nest.values[i].number);
    }
  }

  void run() {
    if (nest_.units() == 0) return;
    for (int64_t row = 0; row < nest_.rowCount(); ++row) {
      setRow(row);
      for (const Stage& stage : nest_.stages) {
        block(stage.row, 1);
        for (int id = stage.row.begin; id < stage.row.end; ++id) spread(id);
        if (!stage.passes()) continue;
        for (const int id : stage.reductions) start(id);
        position_ = 0;
        pass(stage, outer_);
        for (const int id : stage.reductions) finish(id);
      }
    }
  }

private:
  using Bytes = std::vector<std::byte>;

  template <class T>
  T* at(int id) {
    return reinterpret_cast<T*>(values_[static_cast<size_t>(id)].data());
  }
  template <class T>
  const T* operand(int id) {
    return id < 0 ? nullptr : at<T>(id);
  }

  void fill(size_t id, ElemKind kind, uint64_t number) {
    for (int64_t i = 0; i < kRun; ++i) put(kind, number, values_[id].data() + i * elemBytes(kind));
  }

  // A number as nests write it, as an element.
  static void put(ElemKind kind, uint64_t number, std::byte* to) {
    const auto real = std::bit_cast<double>(number);
    if (kind == ElemKind::Float32 || kind == ElemKind::Float64)
      narrow(kind, &real, 1, to, 0);
    else
      std::memcpy(to, &number, static_cast<size_t>(elemBytes(kind)));
  }

  // The first element of a run to all of it.
  void spread(int id) {
    Bytes& bytes = values_[static_cast<size_t>(id)];
    const auto size = static_cast<size_t>(elemBytes(nest_.value(id).kind));
    for (size_t i = size; i < bytes.size(); i += size) std::memcpy(bytes.data() + i, bytes.data(), size);
  }

  // ---------------------------------------------------------------- loops

  void setRow(int64_t row) {
    for (size_t k = 0; k < offsets_.size(); ++k) offsets_[k] = nest_.accesses[k].offset;
    index_ = row * nest_.rowLength();
    for (size_t axis = outer_; axis-- > 0;) {
      move(axis, row % nest_.axes[axis].extent);
      row /= nest_.axes[axis].extent;
    }
  }

  void move(size_t axis, int64_t by) {
    for (size_t k = 0; k < offsets_.size(); ++k) offsets_[k] += by * nest_.accesses[k].strides[axis];
  }

  void pass(const Stage& stage, size_t axis) {
    const int64_t extent = nest_.axes[axis].extent;
    if (axis + 1 < nest_.axes.size()) {
      for (int64_t i = 0; i < extent; ++i, move(axis, 1)) pass(stage, axis + 1);
    } else {
      for (int64_t first = 0; first < extent; first += kRun) {
        const int64_t count = std::min(kRun, extent - first);
        block(stage.each, count);
        for (const int id : stage.reductions) combine(id, count);
        position_ += count;
        move(axis, count);
      }
    }
    move(axis, -extent);
  }

  void block(const Block& block, int64_t count) {
    for (int id = block.begin; id < block.end; ++id) compute(id, count);
    for (const Store& store : block.stores) this->store(store, count);
  }

  // ---------------------------------------------------------------- values

  void compute(int id, int64_t count) {
    const Expr& e = nest_.value(id);
    const auto size = static_cast<size_t>(elemBytes(e.kind));
    std::byte* out = at<std::byte>(id);
    switch (e.op) {
      case Expr::Op::Load:
        return load(e, count, out);
      case Expr::Op::Number:
        return;
      case Expr::Op::Apply:
        return apply(e, count, out);
      case Expr::Op::Convert:
        return convert(e, count, out);
      case Expr::Op::Kept:
        std::memcpy(out, rows_[static_cast<size_t>(e.a)].data() + static_cast<size_t>(position_) * size,
                    static_cast<size_t>(count) * size);
        return;
      case Expr::Op::Reduced:
        std::memcpy(out, reductions_[static_cast<size_t>(e.a)].data(), size);
        return;
      case Expr::Op::Lookup:
        for (int64_t i = 0; i < count; ++i) out[i] = tables_[static_cast<size_t>(e.b)][at<uint8_t>(e.a)[i]];
        return;
      case Expr::Op::Given:
        std::memcpy(out, given_ + static_cast<size_t>(index_ + position_) * size, static_cast<size_t>(count) * size);
        return;
    }
  }

  std::byte* addressOf(const Access& access) {
    return access.table >= 0 ? tables_[static_cast<size_t>(access.table)].data()
                             : operands_[static_cast<size_t>(access.operand)];
  }

  void load(const Expr& e, int64_t count, std::byte* out) {
    const Access& access = nest_.accesses[static_cast<size_t>(e.a)];
    const int64_t size = elemBytes(e.kind), stride = access.strides.back();
    const std::byte* from = addressOf(access) + offsets_[static_cast<size_t>(e.a)] * size;
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(out + i * size, from + i * stride * size, static_cast<size_t>(size));
    if (e.kind == ElemKind::Bool)
      for (int64_t i = 0; i < count; ++i) out[i] = std::byte{out[i] != std::byte{0}};
  }

  void store(const Store& store, int64_t count) {
    const int64_t size = elemBytes(nest_.value(store.value).kind);
    const std::byte* from = at<std::byte>(store.value);
    if (store.row >= 0) {
      std::memcpy(rows_[static_cast<size_t>(store.row)].data() + position_ * size, from,
                  static_cast<size_t>(count * size));
      return;
    }
    const Access& access = nest_.accesses[static_cast<size_t>(store.access)];
    std::byte* to = addressOf(access) + offsets_[static_cast<size_t>(store.access)] * size;
    const int64_t stride = access.strides.back();
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * stride * size, from + i * size, static_cast<size_t>(size));
  }

  void convert(const Expr& e, int64_t count, std::byte* out) {
    const ElemKind from = nest_.value(e.a).kind;
    inDomain(domainOf(from), [&](auto zero) {
      std::array<decltype(zero), kRun> wide;
      widen(from, at<std::byte>(e.a), 0, count, 1, wide.data());
      narrow(e.kind, wide.data(), count, out, 0, e.saturate, e.rounding);
    });
  }

  void apply(const Expr& e, int64_t count, std::byte* out) {
    const ElemKind kind = nest_.value(e.scalar == Scalar::Select ? e.b : e.a).kind;
    if (kind == ElemKind::Bool) return applyToTruths(e, count, reinterpret_cast<uint8_t*>(out));
    inKind(kind, [&](auto zero) {
      using D = decltype(zero);
      const bool select = e.scalar == Scalar::Select, truth = e.kind == ElemKind::Bool;
      std::array<D, kRun> condition, answer;
      if (select)
        for (int64_t i = 0; i < count; ++i) condition[static_cast<size_t>(i)] = static_cast<D>(at<uint8_t>(e.a)[i]);
      D* result = truth ? answer.data() : reinterpret_cast<D*>(out);
      reference::applyScalar(e.scalar, select ? condition.data() : operand<D>(e.a), operand<D>(e.b), operand<D>(e.c),
                             result, count, 8 * sizeof(D));
      if (truth)
        for (int64_t i = 0; i < count; ++i) out[i] = std::byte{answer[static_cast<size_t>(i)] != D{0}};
    });
  }

  void applyToTruths(const Expr& e, int64_t count, uint8_t* out) {
    const uint8_t *x = at<uint8_t>(e.a), *y = at<uint8_t>(e.b), *z = operand<uint8_t>(e.c);
    for (int64_t i = 0; i < count; ++i) {
      const bool value = e.scalar == Scalar::And   ? (x[i] & y[i]) != 0
                         : e.scalar == Scalar::Or  ? (x[i] | y[i]) != 0
                         : e.scalar == Scalar::Xor ? x[i] != y[i]
                         : e.scalar == Scalar::Eq  ? x[i] == y[i]
                                                   : (x[i] != 0 ? y[i] : z[i]) != 0;
      out[i] = value ? 1 : 0;
    }
  }

  // ---------------------------------------------------------------- reductions

  void start(int id) {
    const Reduction& reduction = nest_.reductions[static_cast<size_t>(id)];
    Bytes& parts = reductions_[static_cast<size_t>(id)];
    parts.resize(static_cast<size_t>(kParts * elemBytes(reduction.kind)));
    for (int64_t i = 0; i < kParts; ++i)
      put(reduction.kind, reduction.start, parts.data() + i * elemBytes(reduction.kind));
  }

  template <class D>
  static void combine(Scalar how, D* held, const D* by, int64_t count) {
    reference::applyScalar(how, held, by, static_cast<const D*>(nullptr), held, count, 8 * sizeof(D));
  }

  void combine(int id, int64_t count) {
    const Reduction& reduction = nest_.reductions[static_cast<size_t>(id)];
    inKind(reduction.kind, [&](auto zero) {
      using D = decltype(zero);
      D* parts = reinterpret_cast<D*>(reductions_[static_cast<size_t>(id)].data());
      for (int64_t i = 0; i < count; i += kParts)
        combine(reduction.combine, parts, at<D>(reduction.value) + i, std::min(kParts, count - i));
    });
  }

  void finish(int id) {
    const Reduction& reduction = nest_.reductions[static_cast<size_t>(id)];
    inKind(reduction.kind, [&](auto zero) {
      using D = decltype(zero);
      D* parts = reinterpret_cast<D*>(reductions_[static_cast<size_t>(id)].data());
      for (int64_t half = kParts / 2; half > 0; half /= 2) combine(reduction.combine, parts, parts + half, half);
    });
  }

  const Nest& nest_;
  std::span<std::byte* const> operands_;
  const std::byte* given_;
  size_t outer_;                      // axes outside of a row
  std::vector<Bytes> values_;         // kRun elements each
  std::vector<int64_t> offsets_;      // of each access, where the walk stands
  int64_t index_ = 0, position_ = 0;  // of the row's first point among all, and of the walk in the row
  std::vector<Bytes> tables_, rows_, reductions_;
};

}  // namespace

void evaluate(const Nest& nest, std::span<std::byte* const> operands, const std::byte* given) {
  Evaluation(nest, operands, given).run();
}

}  // namespace aglow::nest
