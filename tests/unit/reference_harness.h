// Runs one operator on tensors: types by its rule, bytes by its reference kernel.
#pragma once

#include <string_view>
#include <vector>

#include "ops/all_ops.h"
#include "ops/op.h"
#include "reference/reference.h"

namespace aglow {

inline Attrs attrsOf(std::string_view op) { return Attrs(opDef(*findOp(op))); }

inline Result<std::vector<Tensor>> runOp(const Attrs& attrs, const std::vector<Tensor>& in) {
  std::vector<const Type*> types;
  std::vector<TensorRef> operands;
  for (const Tensor& tensor : in) {
    types.push_back(tensor.empty() ? nullptr : &tensor.type());
    operands.push_back(tensor.empty() ? TensorRef{} : tensor.ref());
  }
  AGLOW_TRY(const std::vector<Type> results, inferTypes(attrs, types));
  std::vector<Tensor> out;
  std::vector<TensorRef> outputs;
  for (const Type& type : results) out.emplace_back(type);
  for (const Tensor& tensor : out) outputs.push_back(tensor.ref());
  AGLOW_OK(runReference({.attrs = attrs, .in = operands, .out = outputs}));
  return out;
}

// The only result, when all must go well.
inline Tensor runOne(const Attrs& attrs, const std::vector<Tensor>& in) {
  Result<std::vector<Tensor>> results = runOp(attrs, in);
  AGLOW_CHECK(results.ok(), results.error().text());
  return results->front();
}
inline Tensor runOne(std::string_view op, const std::vector<Tensor>& in) { return runOne(attrsOf(op), in); }

inline Tensor f32(Shape shape, const std::vector<double>& values) {
  return Tensor::of(Type(ElemKind::Float32, std::move(shape)), values);
}
inline Tensor i64(Shape shape, const std::vector<int64_t>& values) {
  return Tensor::of(Type(ElemKind::Int64, std::move(shape)), values);
}
inline Tensor ints(ElemKind kind, const std::vector<int64_t>& values) {
  return Tensor::of(Type(kind, Shape{static_cast<int64_t>(values.size())}), values);
}
inline Tensor reals(ElemKind kind, const std::vector<double>& values) {
  return Tensor::of(Type(kind, Shape{static_cast<int64_t>(values.size())}), values);
}

// 0, 1, 2, ... in a shape.
inline Tensor counted(ElemKind kind, Shape shape) {
  std::vector<int64_t> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i);
  return Tensor::of(Type(kind, std::move(shape)), values);
}

}  // namespace aglow
