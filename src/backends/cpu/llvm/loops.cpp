// Nests as functions: every row is visited once, in its stages, with the last axis in vectors.
#include <llvm/IR/MDBuilder.h>

#include "backends/cpu/llvm/points.h"
#include "codegen/nest/build.h"

namespace aglow::codegen {

namespace {

// Vectors that a reduction combines side by side: each of its steps waits for the one before it.
constexpr int kChains = 4;

class LoopEmitter {
public:
  LoopEmitter(const EmitContext& context, const nest::Nest& nest)
      : context_(context), nest_(nest), b(context.module.getContext()) {
    const auto inner = static_cast<size_t>(nest.innerAxes());
    outer_ = nest.axes.size() - inner;
  }

  llvm::Function* run(const std::string& name) {
    function_ = context_.newStep(name);
    b.SetInsertPoint(&function_->getEntryBlock());
    std::vector<llvm::Value*> addresses;
    for (size_t slot = 0; slot < nest_.operands.size(); ++slot)
      addresses.push_back(addressSlot(b, function_->getArg(0), static_cast<int>(slot)));
    PointEmitter points(context_, b, nest_, std::move(addresses));
    if (nest_.units() > 0) emitUnits(points);
    b.CreateRet(b.getInt32(0));
    return function_;
  }

private:
  llvm::Value* number(int64_t value) { return b.getInt64(static_cast<uint64_t>(value)); }
  int64_t stride(size_t access, size_t axis) const { return nest_.accesses[access].strides[axis]; }

  std::vector<int> widths() const {
    const int lanes = context_.target.shape().lanes;
    if (lanes > 4) return {lanes, 4, 1};
    return {lanes, 1};
  }

  void emitUnits(PointEmitter& points) {
    points.makeSlots(widths(), kChains);
    points.loadScalars();
    emitLoop(b, function_->getArg(1), function_->getArg(2), 1, [&](llvm::Value* unit) {
      llvm::Value* row = unit;
      llvm::Value* begin = number(0);
      llvm::Value* end = number(nest_.axes.back().extent);
      if (nest_.chunk > 0) {
        row = b.CreateUDiv(unit, number(nest_.chunks()));
        begin = b.CreateMul(b.CreateURem(unit, number(nest_.chunks())), number(nest_.chunk));
        end = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, end, b.CreateAdd(begin, number(nest_.chunk)));
      }
      const std::vector<llvm::Value*> offsets = rowOffsets(row);
      for (const nest::Stage& stage : nest_.stages) {
        points.row(stage.row, {.width = 1, .offset = [&](size_t access) { return offsets[access]; }});
        if (!stage.passes()) continue;
        chains_ = stage.reductions.empty() ? 1 : kChains;
        const auto pass = [&](bool narrow) {
          const auto each = [&](const Points& at) { points.each(stage, at); };
          points.startReductions(stage, narrow);
          llvm::Value* from = begin;
          if (narrow && nest_.rowLength() > block())
            from = emitLoop(b, begin, end, block(), [&](llvm::Value* at) {
              emitAxes(outer_, offsets, number(0), at, b.CreateAdd(at, number(block())), each);
              points.widenReductions(stage);
            });
          emitAxes(outer_, offsets, number(0), from, end, each);
          points.finishReductions(stage);
        };
        const bool narrow = narrows(stage);
        pass(narrow);
        llvm::Value* trusted = narrow ? points.trusted(stage) : nullptr;
        if (trusted != nullptr) emitUnless(trusted, stage, points, [&] { pass(false); });
      }
    });
  }

  // Points whose sums are taken in f32: 64 of them after one another in each lane.
  int64_t block() const { return int64_t{64} * kChains * widths().front(); }

  // Whether sums are first taken of f32: where the row is a block or can be cut into blocks, and a second pass, in f64,
  // would find what the first one did.
  bool narrows(const nest::Stage& stage) const {
    bool any = false, again = true;
    for (const nest::Store& store : stage.each.stores) again = again && store.access < 0;
    for (const int id : stage.reductions) {
      const nest::Reduction& reduction = nest_.reductions[static_cast<size_t>(id)];
      if (reduction.narrow < 0) continue;
      if (!again && reduction.trust != nest::Reduction::Trust::Always) return false;
      any = true;
    }
    return any && (nest_.rowLength() <= block() || nest_.innerAxes() == 1);
  }

  // Does the pass again, which gives the reductions other totals, where the first ones are not to be trusted.
  void emitUnless(llvm::Value* trusted, const nest::Stage& stage, PointEmitter& points,
                  llvm::function_ref<void()> pass) {
    llvm::LLVMContext& c = b.getContext();
    llvm::BasicBlock* first = b.GetInsertBlock();
    llvm::BasicBlock* again = llvm::BasicBlock::Create(c, "again", function_);
    llvm::BasicBlock* done = llvm::BasicBlock::Create(c, "done", function_);
    b.CreateCondBr(trusted, done, again, llvm::MDBuilder(c).createLikelyBranchWeights());
    std::vector<llvm::Value*> before;
    for (const int id : stage.reductions) before.push_back(points.total(id));
    b.SetInsertPoint(again);
    pass();
    llvm::BasicBlock* last = b.GetInsertBlock();
    b.CreateBr(done);
    b.SetInsertPoint(done);
    for (size_t i = 0; i < before.size(); ++i) {
      llvm::Value*& total = points.total(stage.reductions[i]);
      llvm::PHINode* either = b.CreatePHI(total->getType(), 2);
      either->addIncoming(before[i], first);
      either->addIncoming(total, last);
      total = either;
    }
  }

  // Offsets of each access for a row, from the row's number.
  std::vector<llvm::Value*> rowOffsets(llvm::Value* row) {
    std::vector<llvm::Value*> index(outer_);
    for (size_t axis = outer_; axis-- > 0;) {
      llvm::Value* extent = number(nest_.axes[axis].extent);
      index[axis] = axis == 0 ? row : b.CreateURem(row, extent);
      row = axis == 0 ? row : b.CreateUDiv(row, extent);
    }
    std::vector<llvm::Value*> offsets;
    for (size_t k = 0; k < nest_.accesses.size(); ++k) {
      llvm::Value* offset = number(nest_.accesses[k].offset);
      for (size_t axis = 0; axis < outer_; ++axis)
        if (stride(k, axis) != 0) offset = b.CreateAdd(offset, b.CreateMul(index[axis], number(stride(k, axis))));
      offsets.push_back(offset);
    }
    return offsets;
  }

  // The inner axes one in the other; the last one in vectors, then in narrower ones.
  void emitAxes(size_t axis, const std::vector<llvm::Value*>& offsets, llvm::Value* position, llvm::Value* begin,
                llvm::Value* end, llvm::function_ref<void(const Points&)> body) {
    const auto moved = [&](llvm::Value* i) {
      std::vector<llvm::Value*> next = offsets;
      for (size_t k = 0; k < next.size(); ++k)
        if (stride(k, axis) != 0) next[k] = b.CreateAdd(next[k], b.CreateMul(i, number(stride(k, axis))));
      return next;
    };
    const int64_t extent = nest_.axes[axis].extent;
    if (axis + 1 < nest_.axes.size()) {
      emitLoop(b, number(0), number(extent), 1, [&](llvm::Value* i) {
        llvm::Value* next = b.CreateMul(b.CreateAdd(position, i), number(nest_.axes[axis + 1].extent));
        emitAxes(axis + 1, moved(i), next, begin, end, body);
      });
      return;
    }
    llvm::Value* i = begin;
    const auto pass = [&](int width, int chains) {
      if (extent < int64_t{width} * chains) return;
      i = emitLoop(b, i, end, int64_t{width} * chains, [&](llvm::Value* first) {
        for (int chain = 0; chain < chains; ++chain) {
          llvm::Value* at = b.CreateAdd(first, number(int64_t{width} * chain));
          const std::vector<llvm::Value*> here = moved(at);
          const auto offset = [&](size_t access) { return here[access]; };
          body({.width = width, .offset = offset, .position = b.CreateAdd(position, at), .chain = chain});
        }
      });
    };
    if (chains_ > 1) pass(widths().front(), chains_);
    for (const int width : widths()) pass(width, 1);
  }

  const EmitContext& context_;
  const nest::Nest& nest_;
  llvm::IRBuilder<> b;
  size_t outer_ = 0;  // axes outside of a row
  int chains_ = 1;    // of the stage at hand
  llvm::Function* function_ = nullptr;
};

}  // namespace

Steps emitLoops(const EmitContext& context, const Instr& instr, const std::string& name) {
  const nest::Nest nest = nest::nestOf(context.program, instr);
  AGLOW_CHECK(nest.units() == instr.plan->units, "the plan of " + instr.origin + " has other units");
  Step step{.function = LoopEmitter(context, nest).run(name), .units = nest.units()};
  for (const Operand& operand : instr.operands) step.addresses.push_back({operand.region});
  return {std::move(step)};
}

}  // namespace aglow::codegen
