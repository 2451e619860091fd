// Tensors: a Type and its bytes. Tensor owns (or shares, or maps) them; TensorRef only points at them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tensor/type.h"

namespace aglow {

// Where a kernel finds an operand. The bytes are writable only when the operand is an output.
struct TensorRef {
  const Type* type = nullptr;
  std::byte* data = nullptr;

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

// A tensor whose bytes are never changed once others can see them; copies share the bytes.
class Tensor {
public:
  static constexpr int64_t kAlignment = 64;

  Tensor() = default;
  explicit Tensor(Type type);  // zeroed
  // Bytes kept alive by owner, for instance a mapped file. Bytes that are not aligned to their elements are copied.
  Tensor(Type type, const std::byte* data, std::shared_ptr<const void> owner);

  // From and to plain C++ values, converted to and from the kind; any numeric kind.
  template <class T>
    requires std::is_arithmetic_v<T>
  static Tensor of(Type type, const std::vector<T>& values) {
    if constexpr (std::is_floating_point_v<T>)
      return fromDoubles(std::move(type), std::vector<double>(values.begin(), values.end()));
    else
      return fromInts(std::move(type), std::vector<int64_t>(values.begin(), values.end()));
  }
  static Tensor fromDoubles(Type type, const std::vector<double>& values);
  static Tensor fromInts(Type type, const std::vector<int64_t>& values);
  static Tensor scalar(ElemKind kind, double value);
  // An Int64 vector, the form of shapes and axes.
  static Tensor ints(const std::vector<int64_t>& values);

  bool empty() const { return data_ == nullptr; }
  const Type& type() const { return type_; }
  const std::byte* data() const { return data_.get(); }
  bool ownsBytes() const { return !foreign_; }
  bool isShared() const { return foreign_ || data_.use_count() > 1; }  // someone else may look at the bytes
  std::byte* mutableData();  // internal error when the bytes belong to someone else, or another Tensor shares them
  int64_t bytes() const { return type_.bytes(); }
  TensorRef ref() const { return {&type_, data_.get()}; }

  std::vector<double> doubles() const;
  std::vector<int64_t> toInts() const;
  // The same bytes seen with another type of as many bytes.
  Tensor retyped(Type type) const;
  // The same value at every element, if there is one (and at least one element).
  bool isSplat() const;
  // Stable over runs and machines: type and bytes.
  uint64_t hash() const;
  bool operator==(const Tensor& other) const;  // same type, same bits

private:
  Type type_;
  std::shared_ptr<std::byte> data_;
  bool foreign_ = false;  // someone else's bytes, never to be written
};

}  // namespace aglow
