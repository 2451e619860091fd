// Nests as functions: every row is visited once, in its stages, with the last axis in vectors.
#include "backends/cpu/llvm/points.h"
#include "codegen/nest/build.h"

namespace aglow::codegen {

namespace {

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
    points.makeSlots(widths());
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
        if (stage.each.empty()) continue;
        points.startReductions(stage);
        emitAxes(outer_, offsets, number(0), begin, end, [&](const Points& at) { points.each(stage, at); });
        points.finishReductions(stage);
      }
    });
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
    for (const int width : widths())
      if (extent >= width)
        i = emitLoop(b, i, end, width, [&](llvm::Value* at) {
          const std::vector<llvm::Value*> here = moved(at);
          const auto offset = [&](size_t access) { return here[access]; };
          body({.width = width, .offset = offset, .position = b.CreateAdd(position, at)});
        });
  }

  const EmitContext& context_;
  const nest::Nest& nest_;
  llvm::IRBuilder<> b;
  size_t outer_ = 0;  // axes outside of a row
  llvm::Function* function_ = nullptr;
};

}  // namespace

Steps emitLoops(const EmitContext& context, const Instr& instr, const std::string& name) {
  const nest::Nest nest = nest::nestOf(context.program, instr);
  Step step{.function = LoopEmitter(context, nest).run(name), .units = nest.units()};
  for (const Operand& operand : instr.operands) step.addresses.push_back({operand.region});
  return {std::move(step)};
}

}  // namespace aglow::codegen
