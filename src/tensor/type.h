// Type of a value: element kind, static shape, and quantization parameters where the kind is quantized.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "support/error.h"
#include "tensor/elem_kind.h"

namespace aglow {

// The extents of a tensor. A Shape that exists is valid: no extent is negative, and the number of elements, at 16
// bytes each, fits into 62 bits even when empty extents are counted as one; so arithmetic on valid shapes is safe.
// The number of axes has a limit, because short chains of operators could otherwise ask for any.
class Shape {
public:
  static constexpr int kMaxRank = 64;

  Shape() = default;  // a scalar
  Shape(std::initializer_list<int64_t> dims) : Shape(std::vector<int64_t>(dims)) {}
  // Internal error on extents that are not valid; for sizes that come from outside use create().
  explicit Shape(std::vector<int64_t> dims);
  static Result<Shape> create(std::vector<int64_t> dims);

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t operator[](int axis) const {
    AGLOW_CHECK(axis >= 0 && axis < rank(), "axis " + std::to_string(axis) + " of shape " + text());
    return dims_[static_cast<size_t>(axis)];
  }
  const std::vector<int64_t>& dims() const { return dims_; }
  int64_t elements() const { return elements_; }
  // Row-major strides in elements.
  std::vector<int64_t> strides() const;
  std::string text() const;  // "[1,3,224,224]"

  bool operator==(const Shape& other) const { return dims_ == other.dims_; }

private:
  std::vector<int64_t> dims_;
  int64_t elements_ = 1;
};

// numpy's rule: aligned at the right, an extent of 1 stretches. BadNode error when the shapes do not fit.
Result<Shape> broadcastShapes(const Shape& a, const Shape& b);

// Strides (in elements) to read a tensor of shape `from` as if it had shape `to`; stretched axes get stride 0.
std::vector<int64_t> broadcastStrides(const Shape& from, const Shape& to);

struct QuantParams {
  int axis = -1;  // the axis with a scale of its own for each index; -1: one for the whole tensor
  std::vector<float> scales;
  std::vector<int32_t> offsets;

  bool operator==(const QuantParams&) const = default;
};

class Type {
public:
  Type() = default;
  Type(ElemKind kind, Shape shape) : kind_(kind), shape_(std::move(shape)) {}
  // Quantized types are checked: finite positive scales, offsets in range, as many as the axis asks for.
  static Result<Type> quantized(ElemKind kind, Shape shape, QuantParams params);

  ElemKind kind() const { return kind_; }
  const Shape& shape() const { return shape_; }
  const QuantParams& quant() const { return quant_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int axis) const { return shape_[axis]; }
  int64_t elements() const { return shape_.elements(); }
  int64_t bytes() const { return elements() * elemBytes(kind_); }

  Type withShape(Shape shape) const;  // same kind and parameters
  Type withKind(ElemKind kind) const { return {kind, shape_}; }
  // "f32[1,3,8,8]", "qi8[4]<0.5:3>", "qi8[2,4]<axis 0: 0.5:3, 0.25:0>"
  std::string text() const;

  bool operator==(const Type&) const = default;

private:
  ElemKind kind_ = ElemKind::Float32;
  Shape shape_;
  QuantParams quant_;
};

}  // namespace aglow
