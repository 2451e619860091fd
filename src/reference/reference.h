// The reference kernels: what every operator of the core set means, run on memory. They are the interpreter, and the
// oracle of every other backend.
#pragma once

#include <span>

#include "ops/attrs.h"
#include "support/error.h"
#include "tensor/tensor.h"

namespace aglow {

// One call of a core operator on memory. An absent optional operand has a null type. An output may be the same memory
// as an input of the same type where the operator's record allows it, and overlaps no input otherwise.
struct KernelCall {
  const Attrs& attrs;
  std::span<const TensorRef> in;
  std::span<const TensorRef> out;

  const Type& inType(int i) const { return *in[static_cast<size_t>(i)].type; }
  const Type& outType(int i = 0) const { return *out[static_cast<size_t>(i)].type; }
  const std::byte* inData(int i) const { return in[static_cast<size_t>(i)].data; }
  std::byte* outData(int i = 0) const { return out[static_cast<size_t>(i)].data; }
  bool has(int i) const { return i < static_cast<int>(in.size()) && in[static_cast<size_t>(i)].type != nullptr; }
};
using ReferenceKernel = Status(const KernelCall&);

// Runs any core operator: elementwise ones by their formula, the others by their reference kernel. The types must be
// those that inferTypes gives. RuntimeValue where a value is not allowed; the outputs are then undefined.
Status runReference(const KernelCall& call);

namespace reference {

// One kernel for each Core record, and one for all elementwise ones.
#define AGLOW_ROW(name, function) ReferenceKernel function;
#include "reference/reference_table.inc"
#undef AGLOW_ROW
ReferenceKernel elementwise;

}  // namespace reference

}  // namespace aglow
