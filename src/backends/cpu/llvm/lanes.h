// Values of W neighbouring elements in vector registers (W = 1: one element in a scalar register), their kinds, and the
// way from memory to the domain in which formulas are computed and back.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "backends/cpu/llvm/library.h"
#include "ops/attrs.h"
#include "tensor/elem_kind.h"

namespace aglow::codegen {

// In which type a formula is computed: the narrowest that gives what the reference, which computes in 64 bits, gives.
struct LaneDomain {
  enum class Type : uint8_t { F32, F64, I32, I64 };
  Type type = Type::F32;
  bool isSigned = false;

  bool real() const { return type == Type::F32 || type == Type::F64; }
  bool operator==(const LaneDomain&) const = default;
};
LaneDomain domainOfKind(ElemKind kind);
// Where operands of all these kinds meet.
LaneDomain commonDomain(llvm::ArrayRef<ElemKind> kinds);

// Lanes of a domain, or a mask: one bit a lane.
struct LaneValue {
  llvm::Value* value = nullptr;
  bool mask = false;
};

// How values out of a kind's range become elements of it, as attributes of Cast say.
struct Narrowing {
  bool saturate = false;
  int rounding = 0;  // of f8e8m0: nearest, up, down
};

class LaneBuilder {
public:
  LaneBuilder(llvm::IRBuilder<>& builder, Library& library, const Target& target, int width)
      : b(builder), library_(library), target_(target), width_(width) {}

  int width() const { return width_; }
  llvm::Type* domainType(LaneDomain domain) const { return lanes(scalarType(domain)); }
  llvm::Type* storedType(ElemKind kind) const { return lanes(storedScalar(kind)); }
  llvm::Type* storedScalar(ElemKind kind) const;

  // `index` counts elements. One element for all lanes, where `same` says so.
  llvm::Value* load(ElemKind kind, llvm::Value* base, llvm::Value* index, bool same = false);
  void store(ElemKind kind, llvm::Value* stored, llvm::Value* base, llvm::Value* index);

  // From stored elements to a domain and back.
  LaneValue widen(ElemKind kind, llvm::Value* stored, LaneDomain domain);
  llvm::Value* narrow(ElemKind kind, LaneValue value, LaneDomain domain, Narrowing narrowing = {});

  llvm::Value* constant(LaneDomain domain, double value) const;
  llvm::Value* splat(llvm::Value* scalar) const;
  // A mask as lanes that are 0 or 1; lanes as they are.
  llvm::Value* number(LaneValue value, LaneDomain domain);
  // Lanes that are not zero.
  llvm::Value* mask(LaneValue value, LaneDomain domain);

  // The record's formula on operands already in the domain.
  LaneValue evaluate(const Attrs& attrs, LaneDomain domain, llvm::ArrayRef<LaneValue> operands);

  llvm::Value* smaller(llvm::Value* x, llvm::Value* y, LaneDomain domain) { return extremum(x, y, domain, true); }
  llvm::Value* larger(llvm::Value* x, llvm::Value* y, LaneDomain domain) { return extremum(x, y, domain, false); }

private:
  llvm::Type* scalarType(LaneDomain domain) const;
  llvm::Type* lanes(llvm::Type* scalar) const;
  llvm::Value* extremum(llvm::Value* x, llvm::Value* y, LaneDomain domain, bool least);
  llvm::Value* realToInteger(llvm::Value* value, llvm::Type* scalar, bool isSigned);
  llvm::Value* heldToInteger(llvm::Value* value, llvm::Type* scalar, bool isSigned);
  llvm::Value* convert(llvm::Value* value, LaneDomain from, LaneDomain to);
  llvm::Value* narrowReal(ElemKind kind, llvm::Value* value, LaneDomain domain, Narrowing narrowing);
  // A function of the library, by its name without the domain and width.
  llvm::Value* math(const char* name, llvm::ArrayRef<llvm::Value*> arguments, LaneDomain domain);
  llvm::Value* eachLane(const std::string& name, llvm::ArrayRef<llvm::Value*> arguments, llvm::Type* scalarResult);
  llvm::Value* divide(llvm::Value* x, llvm::Value* y, LaneDomain domain, bool remainder);
  llvm::Value* shift(llvm::Value* x, llvm::Value* by, int bits, bool left);
  LaneValue term(const Term& term, LaneDomain domain, llvm::ArrayRef<LaneValue> values, int bits);

  llvm::IRBuilder<>& b;
  Library& library_;
  const Target& target_;
  int width_;
};

}  // namespace aglow::codegen
