// Nests of instructions.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "codegen/nest/nest.h"

namespace aglow::nest {

// Whether an instruction is a nest as a whole: fused data-parallel instructions and reductions of rows, and single
// data-parallel ones. A reduction by itself is an instruction for a kernel.
bool isNest(const Program& program, const Instr& instr);

// The nest of such an instruction.
Nest nestOf(const Program& program, const Instr& instr);

// What an instruction of another kind, maybe fused with data-parallel ones after it, does with each element of its
// first result, as its epilogue: it is computed on from (Expr::Given) and stored where the instruction says. `view` has
// the extents under which the result is walked over; their product is its number of elements. What is given is of the
// kind that the result is computed in, or of another one, from which it is rounded once.
Nest epilogueOf(const Program& program, const Instr& instr, std::span<const int64_t> view,
                std::optional<ElemKind> given = {});

// The nest of an instruction that is one; of any other fused one its epilogue, in the shape of the anchor's result.
// None of the rest, and of what has no elements.
std::optional<Nest> nestIn(const Program& program, const Instr& instr);

// The number of a scalar constant that nests hold themselves: a round one, as bounds, halves and small factors are.
// Others, such as scales, differ from use to use of the same code.
std::optional<double> literalOf(const Program& program, RegionId region);

// Steps to read a tensor of shape `from`, broadcast to a shape, when that shape is seen under other extents; none where
// steps cannot say it.
std::optional<std::vector<int64_t>> stridesInView(const Shape& from, const Shape& shape, std::span<const int64_t> view);

}  // namespace aglow::nest
