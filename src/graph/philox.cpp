#include "graph/philox.h"

#include <fmt/format.h>

#include <cmath>

namespace aglow {

namespace {

constexpr int kRounds = 10, kHalf = 32, kDigits = 24;
constexpr uint64_t kLow = 0xffffffffU, kFactor = 0xd256d193U, kKeyStep = 0x9e3779b9U;

// Both halves of a seed in the key of 32 bits.
uint64_t keyOf(uint64_t seed) {
  constexpr uint64_t kMix = 0xbf58476d1ce4e5b9U;
  const uint64_t mixed = (seed ^ (seed >> kHalf)) * kMix;
  return (mixed ^ (mixed >> kHalf)) & kLow;
}

Value wide(Builder& b, uint64_t number) {
  // Halves are exact as doubles.
  return b.constant(Tensor::fromInts(Type(ElemKind::UInt64, Shape{}), {static_cast<int64_t>(number)}));
}

// The number of each element, as [rows, columns] so that constants stay small.
Value places(Builder& b, const Shape& shape) {
  constexpr int64_t kRow = 256;
  int64_t columns = 1;
  for (int axis = shape.rank() - 1; axis >= 0 && columns < kRow; --axis) columns *= shape[axis];
  const int64_t rows = shape.elements() / columns;
  const auto counted = [&](int64_t count, int64_t step, std::vector<int64_t> dims) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(i * step);
    return b.constant(Tensor::fromInts(Type(ElemKind::UInt64, Shape(std::move(dims))), values));
  };
  return b.add(counted(rows, columns, {rows, 1}), counted(columns, 1, {1, columns}));
}

}  // namespace

Value uniformNumbers(Builder& b, const Shape& shape, uint64_t seed, Value run) {
  const int64_t elements = shape.elements();
  if (elements == 0) return b.splat({.elem = ElemKind::Float32, .shape = shape.dims()});
  if (static_cast<uint64_t>(elements) > kLow)
    fail(Code::TooLarge, fmt::format("{} random numbers exceed the limit of {}", elements, kLow));
  const Value half = wide(b, kHalf), low = wide(b, kLow), factor = wide(b, kFactor);
  Value left = places(b, shape), right = b.bitAnd(run, low);
  uint64_t key = keyOf(seed);
  for (int round = 0; round < kRounds; ++round, key = (key + kKeyStep) & kLow) {
    const Value product = b.mul(left, factor);
    left = b.bitXor(b.bitXor(b.shiftRight(product, half), right), wide(b, key));
    right = b.bitAnd(product, low);
  }
  const Value digits = b.casted(b.shiftRight(left, wide(b, kHalf - kDigits)), ElemKind::Float32);
  return b.reshaped(b.mul(digits, b.scalar(ElemKind::Float32, std::ldexp(1, -kDigits))), shape.dims());
}

std::vector<double> uniformNumbers(int64_t count, uint64_t seed, uint64_t run) {
  std::vector<double> numbers;
  for (int64_t place = 0; place < count; ++place) {
    uint64_t left = static_cast<uint64_t>(place) & kLow, right = run & kLow, key = keyOf(seed);
    for (int round = 0; round < kRounds; ++round, key = (key + kKeyStep) & kLow) {
      const uint64_t product = left * kFactor;
      left = (product >> kHalf) ^ right ^ key;
      right = product & kLow;
    }
    numbers.push_back(std::ldexp(static_cast<double>(left >> (kHalf - kDigits)), -kDigits));
  }
  return numbers;
}

}  // namespace aglow
