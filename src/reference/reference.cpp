// From an operator to its reference kernel.
#include "reference/reference.h"

#include <cstring>

#include "ops/op.h"

namespace aglow {

namespace {

// A view has the bytes of its operand.
Status copyBytes(const KernelCall& call) {
  if (call.outData() != call.inData(0))
    std::memcpy(call.outData(), call.inData(0), static_cast<size_t>(call.outType().bytes()));
  return {};
}

ReferenceKernel* coreKernel(Op op) {
  switch (op) {
#define AGLOW_ROW(name, function) \
  case Op::name:                  \
    return reference::function;
#include "reference/reference_table.inc"
#undef AGLOW_ROW
    default:
      return nullptr;
  }
}

}  // namespace

Status runReference(const KernelCall& call) {
  const OpDef& op = call.attrs.op();
  if (op.kind == OpKind::Elementwise) return reference::elementwise(call);
  if (op.kind == OpKind::View) return copyBytes(call);
  ReferenceKernel* kernel = coreKernel(opOf(op));
  AGLOW_CHECK(kernel != nullptr, std::string(op.name) + " is not of the core set");
  return kernel(call);
}

}  // namespace aglow
