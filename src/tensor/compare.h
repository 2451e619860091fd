// How far two tensors are apart, element by element: NaN equals NaN, and an infinity the same infinity.
#pragma once

#include <string>

#include "tensor/tensor.h"

namespace aglow {

// Elements agree when |got - expected| <= atol + rtol * |expected|.
struct Tolerance {
  double atol = 0;
  double rtol = 0;
};

// What rounding in another order may well cost in this kind; nothing for integers.
Tolerance defaultTolerance(ElemKind kind);

struct Comparison {
  std::string typeFault;  // why there is nothing to compare: another kind or shape
  double maxAbs = 0;      // over all elements; infinite where one is NaN or infinite and the other is not
  double maxRel = 0;      // |got - expected| / |expected|
  int64_t beyond = 0;     // elements that do not agree
  int64_t worst = -1;     // the element furthest beyond its tolerance, or just furthest apart; none when all are equal

  bool agrees() const { return typeFault.empty() && beyond == 0; }
};

Comparison compare(const Tensor& got, const Tensor& expected, Tolerance tolerance);

// "[0,3,1]", of the element at a position in row-major order.
std::string indexText(const Shape& shape, int64_t position);
// One element, with enough digits to tell it from its neighbours.
std::string elementText(const Tensor& tensor, int64_t position);

struct Statistics {
  double min = 0, max = 0, mean = 0;  // over finite elements
  int64_t finite = 0, nan = 0, infinite = 0;
};
Statistics statisticsOf(const Tensor& tensor);

}  // namespace aglow
