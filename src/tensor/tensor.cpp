// Ownership of a tensor's bytes, and tensors from and to plain values.
#include "tensor/tensor.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "support/hash.h"
#include "support/sizes.h"
#include "tensor/convert.h"

namespace aglow {

namespace {

// Whole alignment units, and never none, so that every tensor has an address of its own. calloc knows which memory is
// zero already, and large tensors take up memory only where they are written.
std::shared_ptr<std::byte> allocate(int64_t bytes) {
  constexpr auto kUnit = static_cast<size_t>(Tensor::kAlignment);
  size_t room = static_cast<size_t>(alignUp(bytes > 0 ? bytes : 1, Tensor::kAlignment)) + kUnit;
  void* base = std::calloc(room, 1);
  if (base == nullptr) throw std::bad_alloc();
  std::shared_ptr<void> owner(base, &std::free);
  return {std::move(owner), static_cast<std::byte*>(std::align(kUnit, room - kUnit, base, room))};
}

template <class D>
Tensor fromValues(Type type, const std::vector<D>& values) {
  AGLOW_CHECK(static_cast<int64_t>(values.size()) == type.elements(),
              fmt::format("{} values for {}", values.size(), type.text()));
  Tensor tensor(std::move(type));
  store(tensor.ref(), values);
  return tensor;
}

}  // namespace

Tensor::Tensor(Type type) : type_(std::move(type)), data_(allocate(type_.bytes())) {}

Tensor::Tensor(Type type, const std::byte* data, std::shared_ptr<const void> owner) : type_(std::move(type)) {
  const bool aligned = reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(elemBytes(type_.kind())) == 0;
  if (data != nullptr && aligned) {
    // Writers ask mutableData(), which knows that these bytes are foreign; the const is given back there.
    data_ = std::shared_ptr<std::byte>(std::const_pointer_cast<void>(std::move(owner)), const_cast<std::byte*>(data));
    foreign_ = true;
  } else {
    AGLOW_CHECK(data != nullptr || bytes() == 0, "no bytes for " + type_.text());
    data_ = allocate(bytes());
    if (data != nullptr) std::memcpy(data_.get(), data, static_cast<size_t>(bytes()));
  }
}

Tensor Tensor::fromDoubles(Type type, const std::vector<double>& values) { return fromValues(std::move(type), values); }
Tensor Tensor::fromInts(Type type, const std::vector<int64_t>& values) { return fromValues(std::move(type), values); }
Tensor Tensor::scalar(ElemKind kind, double value) { return fromDoubles(Type(kind, {}), {value}); }
Tensor Tensor::ints(const std::vector<int64_t>& values) {
  return fromInts(Type(ElemKind::Int64, Shape{static_cast<int64_t>(values.size())}), values);
}

std::byte* Tensor::mutableData() {
  AGLOW_CHECK(!empty(), "an empty tensor has no bytes");
  AGLOW_CHECK(!foreign_ && data_.use_count() == 1, "the bytes of " + type_.text() + " are shared");
  return data_.get();
}

std::vector<double> Tensor::doubles() const {
  AGLOW_CHECK(!empty(), "an empty tensor has no values");
  return widened<double>(ref());
}

std::vector<int64_t> Tensor::toInts() const {
  AGLOW_CHECK(!empty(), "an empty tensor has no values");
  return widened<int64_t>(ref());
}

Tensor Tensor::retyped(Type type) const {
  AGLOW_CHECK(!empty() && type.bytes() == bytes(), type_.text() + " cannot be seen as " + type.text());
  Tensor seen(std::move(type), data(), data_);
  if (seen.data() == data()) seen.foreign_ = foreign_;
  return seen;
}

bool Tensor::isSplat() const {
  if (empty() || type_.elements() == 0) return false;
  const int step = elemBytes(type_.kind());
  return std::memcmp(data(), data() + step, static_cast<size_t>(bytes() - step)) == 0;
}

uint64_t Tensor::hash() const {
  const std::string text = type_.text();
  const uint64_t seed = hashBytes(text.data(), text.size());
  return empty() ? seed : hashBytes(data(), static_cast<size_t>(bytes()), seed);
}

bool Tensor::operator==(const Tensor& other) const {
  if (empty() || other.empty()) return empty() == other.empty();
  return type_ == other.type_ && std::memcmp(data(), other.data(), static_cast<size_t>(bytes())) == 0;
}

}  // namespace aglow
