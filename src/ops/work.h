// What one use of an operator costs, in numbers that plans and passes compare.
#pragma once

#include <span>

#include "ops/attrs.h"
#include "tensor/type.h"

namespace aglow {

// Arithmetic operations, by the record's rule.
double flopsOf(const Attrs& attrs, std::span<const Type* const> in, const Type& out);

// A rough time in microseconds for one thread on any of today's processors.
double roughTime(double flops, double bytes);

}  // namespace aglow
