// Values of W neighbouring points in vector registers (W = 1: one in a scalar register), and the primitives of nests on
// them.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "backends/cpu/llvm/library.h"
#include "codegen/nest/nest.h"

namespace aglow::codegen {

class LaneBuilder {
public:
  LaneBuilder(llvm::IRBuilder<>& builder, Library& library, const Target& target, int width)
      : b(builder), library_(library), target_(target), width_(width) {}

  int width() const { return width_; }
  // Of values: a bit for a truth value, the integer that stores it for a kind that is only stored.
  llvm::Type* type(ElemKind kind) const { return lanes(scalarType(kind)); }
  // Of an element in memory.
  llvm::Type* storedScalar(ElemKind kind) const;

  // `index` counts elements. One element for all lanes, where `same` says so.
  llvm::Value* load(ElemKind kind, llvm::Value* base, llvm::Value* index, bool same = false);
  void store(ElemKind kind, llvm::Value* value, llvm::Value* base, llvm::Value* index);

  // A number as nests write it (Expr::number).
  llvm::Value* number(ElemKind kind, uint64_t bits) const;
  llvm::Value* splat(llvm::Value* scalar) const;

  // One of the conversions that nest::converts lists; saturate and rounding are for narrow floats.
  llvm::Value* convert(llvm::Value* value, ElemKind from, ElemKind to, bool saturate = false,
                       ScaleRounding rounding = ScaleRounding::Nearest);
  // A primitive on values of one kind; Select's condition `a` is a truth value.
  llvm::Value* apply(Scalar op, ElemKind kind, llvm::Value* a, llvm::Value* y = nullptr, llvm::Value* z = nullptr);

  // The entries of a table of 256 bytes that bytes number.
  llvm::Value* lookup(llvm::Value* table, llvm::Value* bytes);

private:
  llvm::Type* scalarType(ElemKind kind) const;
  llvm::Type* lanes(llvm::Type* scalar) const;
  bool hasHalves() const;
  llvm::Value* extremum(llvm::Value* x, llvm::Value* y, ElemKind kind, bool least);
  llvm::Value* realToInteger(llvm::Value* value, ElemKind to);
  llvm::Value* heldToInteger(llvm::Value* value, ElemKind to);
  llvm::Value* heldToWords(llvm::Value* value);
  llvm::Value* narrowed(llvm::Value* value, ElemKind from, ElemKind to, bool saturate, ScaleRounding rounding);
  // A function of the library, by its name without the kind and width.
  llvm::Value* math(std::string_view name, llvm::ArrayRef<llvm::Value*> arguments, ElemKind kind);
  llvm::Value* permuted(llvm::Value* table, llvm::Value* bytes);
  llvm::Value* eachLane(const std::string& name, llvm::ArrayRef<llvm::Value*> arguments, llvm::Type* scalarResult);
  llvm::Value* divide(llvm::Value* x, llvm::Value* y, ElemKind kind, bool remainder);
  llvm::Value* shift(llvm::Value* x, llvm::Value* by, bool left);

  llvm::IRBuilder<>& b;
  Library& library_;
  const Target& target_;
  int width_;
};

}  // namespace aglow::codegen
