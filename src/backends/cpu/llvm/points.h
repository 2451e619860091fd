// The blocks of a nest on lanes.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "backends/cpu/llvm/steps.h"
#include "codegen/nest/nest.h"

namespace aglow::codegen {

// Where the points of a block stand.
struct Points {
  int width = 1;
  std::function<llvm::Value*(size_t access)> offset;  // the access' element at the first point
  llvm::Value* position = nullptr;                    // of the first point in its row
  llvm::Value* given = nullptr;                       // Expr::Given
  int chain = 0;                                      // which accumulators the reductions use, of the widest points
};

// Prints blocks one after the other, where the builder stands, and remembers what later ones need.
class PointEmitter {
public:
  // `addresses` has one for each operand of the nest that an access is of.
  PointEmitter(const EmitContext& context, llvm::IRBuilder<>& builder, const nest::Nest& nest,
               std::vector<llvm::Value*> addresses);

  // Memory on the stack for rows and reductions; the builder stands in the function's entry.
  void makeSlots(llvm::ArrayRef<int> widths, int chains);
  // Loads what is one element for all points, unless the nest writes it; the builder stands there as well.
  void loadScalars();

  // What is known once per row.
  void row(const nest::Block& block, const Points& points);
  // One step of a pass: the values, what reductions take from them, the stores.
  void each(const nest::Stage& stage, const Points& points);

  // Before and after a pass. Where a pass is `narrow`, sums in f64 are taken of f32.
  void startReductions(const nest::Stage& stage, bool narrow);
  void finishReductions(const nest::Stage& stage);
  // In a narrow pass: what has been added up so far goes on in f64.
  void widenReductions(const nest::Stage& stage);
  // After a narrow pass: whether its sums can be trusted, or null where they can always.
  llvm::Value* trusted(const nest::Stage& stage);
  llvm::Value*& total(int reduction) { return totals_[static_cast<size_t>(reduction)]; }

private:
  using Known = std::vector<llvm::Value*>;  // by value

  LaneBuilder lanes(int width) { return {b, context_.library, context_.target, width}; }
  llvm::Value* addressOf(const nest::Access& access) const;
  void values(const nest::Block& block, const Points& points, Known& known);
  llvm::Value* value(int id, LaneBuilder& lanes, const Known& known) const;
  llvm::Value* expression(const nest::Expr& e, LaneBuilder& lanes, const Points& points, const Known& known);
  void stores(const nest::Block& block, const Points& points, const Known& known);
  // The kind that the pass at hand adds up in, and what the accumulators of a kind come to.
  ElemKind accumulated(const nest::Reduction& reduction) const {
    return narrow_ && reduction.narrow >= 0 ? ElemKind::Float32 : reduction.kind;
  }
  llvm::Value* combined(int id, ElemKind kind);

  const EmitContext& context_;
  llvm::IRBuilder<>& b;
  const nest::Nest& nest_;
  std::vector<llvm::Value*> addresses_, tables_;
  std::vector<llvm::AllocaInst*> rows_;
  std::map<int, llvm::Value*> scalars_;  // by access
  // By reduction; by width, chain and kind.
  std::vector<std::map<std::tuple<int, int, ElemKind>, llvm::AllocaInst*>> accumulators_;
  bool narrow_ = false;               // of the pass at hand
  std::vector<llvm::Value*> totals_;  // by reduction
  Known rowValues_;
};

}  // namespace aglow::codegen
