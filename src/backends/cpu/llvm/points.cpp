#include "backends/cpu/llvm/points.h"

#include <algorithm>
#include <set>

#include "support/check.h"

namespace aglow::codegen {

namespace {

llvm::GlobalVariable* emitTable(llvm::Module& module, const nest::Table& table) {
  llvm::LLVMContext& c = module.getContext();
  llvm::Constant* data = nullptr;
  if (table.kind == ElemKind::Float64) {
    data = llvm::ConstantDataArray::get(c, table.values);
  } else if (table.kind == ElemKind::Float32) {
    const std::vector<float> narrow(table.values.begin(), table.values.end());
    data = llvm::ConstantDataArray::get(c, narrow);
  } else {
    std::vector<uint8_t> bytes;
    for (const double value : table.values) bytes.push_back(static_cast<uint8_t>(static_cast<int>(value)));
    data = llvm::ConstantDataArray::get(c, bytes);
  }
  auto* global =
      new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, "table");
  global->setAlignment(llvm::Align(64));
  return global;
}

}  // namespace

PointEmitter::PointEmitter(const EmitContext& context, llvm::IRBuilder<>& builder, const nest::Nest& nest,
                           std::vector<llvm::Value*> addresses)
    : context_(context),
      b(builder),
      nest_(nest),
      addresses_(std::move(addresses)),
      totals_(nest.reductions.size()),
      rowValues_(nest.values.size()) {
  for (const nest::Table& table : nest.tables) tables_.push_back(emitTable(context.module, table));
}

void PointEmitter::makeSlots(llvm::ArrayRef<int> widths, int chains) {
  for (const ElemKind kind : nest_.rows) {
    llvm::Type* element = lanes(1).storedScalar(kind);
    rows_.push_back(b.CreateAlloca(llvm::ArrayType::get(element, static_cast<uint64_t>(nest_.rowLength()))));
    rows_.back()->setAlignment(llvm::Align(64));
  }
  for (const nest::Reduction& reduction : nest_.reductions) {
    auto& slots = accumulators_.emplace_back();
    const auto add = [&](ElemKind kind) {
      for (const int width : widths)
        for (int chain = 0; chain < (width == widths.front() ? chains : 1); ++chain)
          slots[{width, chain, kind}] = b.CreateAlloca(lanes(width).type(kind));
    };
    add(reduction.kind);
    if (reduction.narrow >= 0) add(ElemKind::Float32);
  }
}

void PointEmitter::loadScalars() {
  std::set<int> written;
  for (const nest::Stage& stage : nest_.stages)
    for (const nest::Block* block : {&stage.row, &stage.each})
      for (const nest::Store& store : block->stores)
        if (store.access >= 0) written.insert(nest_.accesses[static_cast<size_t>(store.access)].operand);
  for (const nest::Expr& e : nest_.values) {
    if (e.op != nest::Expr::Op::Load) continue;
    const nest::Access& access = nest_.accesses[static_cast<size_t>(e.a)];
    const bool moves = std::any_of(access.strides.begin(), access.strides.end(), [](int64_t s) { return s != 0; });
    if (moves || access.operand < 0 || written.contains(access.operand)) continue;
    scalars_[e.a] = lanes(1).load(e.kind, addressOf(access), b.getInt64(static_cast<uint64_t>(access.offset)));
  }
}

llvm::Value* PointEmitter::addressOf(const nest::Access& access) const {
  return access.table >= 0 ? tables_[static_cast<size_t>(access.table)]
                           : addresses_[static_cast<size_t>(access.operand)];
}

// Numbers stand everywhere; what is known once for a row is the same in all lanes.
llvm::Value* PointEmitter::value(int id, LaneBuilder& lanes, const Known& known) const {
  const nest::Expr& e = nest_.value(id);
  if (e.op == nest::Expr::Op::Number) return lanes.number(e.kind, e.number);
  const auto index = static_cast<size_t>(id);
  return known[index] != nullptr ? known[index] : lanes.splat(rowValues_[index]);
}

llvm::Value* PointEmitter::expression(const nest::Expr& e, LaneBuilder& lanes, const Points& points,
                                      const Known& known) {
  using Op = nest::Expr::Op;
  const auto at = [&](int id) { return id < 0 ? nullptr : value(id, lanes, known); };
  switch (e.op) {
    case Op::Load: {
      if (const auto scalar = scalars_.find(e.a); scalar != scalars_.end()) return lanes.splat(scalar->second);
      const nest::Access& access = nest_.accesses[static_cast<size_t>(e.a)];
      AGLOW_CHECK(access.strides.back() == 0 || access.strides.back() == 1, "lanes that are not neighbours in memory");
      return lanes.load(e.kind, addressOf(access), points.offset(static_cast<size_t>(e.a)), access.strides.back() == 0);
    }
    case Op::Number:
      return lanes.number(e.kind, e.number);
    case Op::Apply: {
      const ElemKind kind = nest_.value(e.scalar == Scalar::Select ? e.b : e.a).kind;
      return lanes.apply(e.scalar, kind, at(e.a), at(e.b), at(e.c));
    }
    case Op::Convert:
      return lanes.convert(at(e.a), nest_.value(e.a).kind, e.kind, e.saturate, e.rounding);
    case Op::Kept:
      return lanes.load(e.kind, rows_[static_cast<size_t>(e.a)], points.position);
    case Op::Reduced:
      return lanes.splat(totals_[static_cast<size_t>(e.a)]);
    case Op::Given:
      return points.given;
    case Op::Lookup:
      return lanes.lookup(tables_[static_cast<size_t>(e.b)], at(e.a));
  }
  AGLOW_CHECK(false, "no such expression");
}

void PointEmitter::values(const nest::Block& block, const Points& points, Known& known) {
  LaneBuilder here = lanes(points.width);
  for (int id = block.begin; id < block.end; ++id)
    known[static_cast<size_t>(id)] = expression(nest_.value(id), here, points, known);
}

void PointEmitter::stores(const nest::Block& block, const Points& points, const Known& known) {
  LaneBuilder here = lanes(points.width);
  for (const nest::Store& store : block.stores) {
    const ElemKind kind = nest_.value(store.value).kind;
    llvm::Value* stored = value(store.value, here, known);
    if (store.row >= 0)
      here.store(kind, stored, rows_[static_cast<size_t>(store.row)], points.position);
    else
      here.store(kind, stored, addressOf(nest_.accesses[static_cast<size_t>(store.access)]),
                 points.offset(static_cast<size_t>(store.access)));
  }
}

void PointEmitter::row(const nest::Block& block, const Points& points) {
  values(block, points, rowValues_);
  stores(block, points, rowValues_);
}

void PointEmitter::each(const nest::Stage& stage, const Points& points) {
  Known known(nest_.values.size());
  values(stage.each, points, known);
  LaneBuilder here = lanes(points.width);
  for (const int id : stage.reductions) {
    const nest::Reduction& reduction = nest_.reductions[static_cast<size_t>(id)];
    const ElemKind kind = accumulated(reduction);
    const int taken = kind == reduction.kind ? reduction.value : reduction.narrow;
    llvm::AllocaInst* slot = accumulators_[static_cast<size_t>(id)].at({points.width, points.chain, kind});
    llvm::Value* held = b.CreateLoad(slot->getAllocatedType(), slot);
    b.CreateStore(here.apply(reduction.combine, kind, held, value(taken, here, known)), slot);
  }
  stores(stage.each, points, known);
}

void PointEmitter::startReductions(const nest::Stage& stage, bool narrow) {
  narrow_ = narrow;
  for (const int id : stage.reductions) {
    const nest::Reduction& reduction = nest_.reductions[static_cast<size_t>(id)];
    for (const auto& [of, slot] : accumulators_[static_cast<size_t>(id)])
      b.CreateStore(lanes(std::get<0>(of)).number(std::get<ElemKind>(of), reduction.start), slot);
  }
}

void PointEmitter::widenReductions(const nest::Stage& stage) {
  for (const int id : stage.reductions) {
    const nest::Reduction& reduction = nest_.reductions[static_cast<size_t>(id)];
    if (reduction.narrow < 0) continue;
    auto& slots = accumulators_[static_cast<size_t>(id)];
    for (const auto& [of, wide] : slots) {
      const auto [width, chain, kind] = of;
      if (kind != reduction.kind) continue;
      llvm::AllocaInst* narrow = slots.at({width, chain, ElemKind::Float32});
      llvm::Value* sum = b.CreateFPExt(b.CreateLoad(narrow->getAllocatedType(), narrow), wide->getAllocatedType());
      b.CreateStore(b.CreateFAdd(b.CreateLoad(wide->getAllocatedType(), wide), sum), wide);
      b.CreateStore(lanes(width).number(ElemKind::Float32, reduction.start), narrow);
    }
  }
}

llvm::Value* PointEmitter::trusted(const nest::Stage& stage) {
  using Trust = nest::Reduction::Trust;
  llvm::Value* all = nullptr;
  const auto require = [&](llvm::Value* holds) { all = all == nullptr ? holds : b.CreateAnd(all, holds); };
  for (const int id : stage.reductions) {
    const nest::Reduction& reduction = nest_.reductions[static_cast<size_t>(id)];
    if (reduction.narrow < 0 || reduction.trust == Trust::Always) continue;
    llvm::Value* size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, total(id));
    require(b.CreateFCmpOLT(size, llvm::ConstantFP::getInfinity(size->getType())));
    if (reduction.trust == Trust::Normal)
      require(b.CreateFCmpOGT(size, llvm::ConstantFP::get(size->getType(), nest::Reduction::kNormal)));
  }
  return all;
}

// The chains of a width become one, which is halved until one lane is left: the same tree whatever the row's length.
llvm::Value* PointEmitter::combined(int id, ElemKind kind) {
  const nest::Reduction& reduction = nest_.reductions[static_cast<size_t>(id)];
  const auto combine = [&](int width, llvm::Value* x, llvm::Value* y) {
    return x == nullptr ? y : lanes(width).apply(reduction.combine, kind, x, y);
  };
  std::map<int, llvm::Value*, std::greater<>> byWidth;
  for (const auto& [of, slot] : accumulators_[static_cast<size_t>(id)]) {
    if (std::get<ElemKind>(of) != kind) continue;
    const int width = std::get<0>(of);
    byWidth[width] = combine(width, byWidth[width], b.CreateLoad(slot->getAllocatedType(), slot));
  }
  llvm::Value* total = nullptr;
  for (auto [widest, held] : byWidth) {
    for (int width = widest; width > 1; width /= 2) {
      std::vector<int> low, high;
      for (int i = 0; i < width / 2; ++i) {
        low.push_back(i);
        high.push_back(i + width / 2);
      }
      llvm::Value* x = width == 2 ? b.CreateExtractElement(held, uint64_t{0}) : b.CreateShuffleVector(held, low);
      llvm::Value* y = width == 2 ? b.CreateExtractElement(held, uint64_t{1}) : b.CreateShuffleVector(held, high);
      held = combine(width / 2, x, y);
    }
    total = combine(1, total, held);
  }
  return total;
}

void PointEmitter::finishReductions(const nest::Stage& stage) {
  for (const int id : stage.reductions) {
    const nest::Reduction& reduction = nest_.reductions[static_cast<size_t>(id)];
    total(id) = combined(id, reduction.kind);
    if (!narrow_ || reduction.narrow < 0) continue;
    llvm::Value* rest = combined(id, ElemKind::Float32);
    total(id) = b.CreateFAdd(total(id), b.CreateFPExt(rest, total(id)->getType()));
  }
}

}  // namespace aglow::codegen
