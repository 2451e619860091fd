// Why rows of the kernel table refuse a problem: what the kernel needs against what is there.
#pragma once

#include <fmt/format.h>

#include <initializer_list>

#include "backends/cpu/kernels/plan.h"

namespace aglow::cpu {

inline Decision needsF32(const Problem& problem) {
  const ElemKind kind = problem.outType().kind();
  if (kind == ElemKind::Float32) return Decision::yes();
  return Decision::no(fmt::format("needs f32, has {}", elemName(kind)));
}

inline Decision needsElements(std::initializer_list<const Type*> types) {
  for (const Type* type : types)
    if (type->elements() == 0) return Decision::no(fmt::format("needs elements, has {}", type->text()));
  return Decision::yes();
}

inline Decision hasMatrixRegisters(const Machine& machine) {
  return machine.matrix ? Decision::yes() : Decision::no("needs a processor with registers of matrices");
}

}  // namespace aglow::cpu
