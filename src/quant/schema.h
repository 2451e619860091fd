// How integers stand for real numbers, value = (q - offset) * scale: rows of one table for values, one way for weights.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "quant/calibrate.h"
#include "tensor/tensor.h"

namespace aglow::quant {

struct Schema {
  std::string_view name, doc;
  ElemKind kind;         // of values
  ElemKind neverBelow0;  // of values that are never negative
  bool symmetric;        // the offset is 0
  bool powerOfTwo;       // so are all scales
};
std::span<const Schema> schemas();
// By its name; Usage error with the names there are.
Result<const Schema*> findSchema(std::string_view name);

struct Parameters {
  ElemKind kind = ElemKind::UInt8;
  float scale = 1;
  int64_t offset = 0;

  bool operator==(const Parameters&) const = default;
};
// For values of the range and for zero, which is always exact. An empty range gets a scale that is safe to divide by.
Parameters parametersFor(const Range& range, const Schema& schema);
// What its integers stand for, from the smallest to the largest.
Range rangeOf(const Parameters& parameters);
// How many integers a range has for itself.
int levelsOf(const Schema& schema);

// Integers of -127 to 127 with a scale for each index of the axis.
struct Weights {
  Tensor integers;  // i8, of the same shape
  std::vector<float> scales;
};
// No scale is smaller than `least` has it, where that is not empty.
Weights quantizeWeights(const Tensor& weights, int axis, const Schema& schema, std::span<const double> least = {});
// Whether weights of f32 have neither infinities nor NaN, which no integer stands for.
bool isFinite(const Tensor& weights);
// Integers (i32) at given scales along the last axis.
Tensor quantizeBias(const Tensor& bias, std::span<const float> scales);

}  // namespace aglow::quant
