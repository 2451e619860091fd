// Expressions seen through the order in which they are written: products as lists of factors, and polynomials.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "graph/node.h"

namespace aglow {

// number * factors[0] * factors[1] * ...
struct Product {
  double number = 1;
  std::vector<Value> factors;
};

// A value as a product, as far as it is one; numbers are multiplied together, and divisors and signs belong to them.
// Only a few factors are looked for: patterns have no more.
Product productOf(Value v);

// c[0] + c[1] x + c[2] x^2 + c[3] x^3
using Cubic = std::array<double, 4>;

// A value as a polynomial in x of the same shape, if it is one.
std::optional<Cubic> cubicIn(Value v, Value x);
// Whether it is this one, up to rounding.
bool isCubic(Value v, Value x, const Cubic& expected);

// The nearest node of an operator on the way down through sums, products and signs; empty when there is none.
Value findBelow(Value v, Op op);

}  // namespace aglow
