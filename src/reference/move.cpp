// Operators that move elements as they are, repeat one, or convert their kind.
#include <algorithm>
#include <array>
#include <cstring>

#include "ops/axes.h"
#include "reference/arithmetic.h"
#include "reference/reference.h"
#include "reference/strided.h"

namespace aglow::reference {

namespace {

int64_t offsetOf(const std::vector<int64_t>& index, const std::vector<int64_t>& strides) {
  int64_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i) offset += index[i] * strides[i];
  return offset;
}

// One element's bytes at every element.
void fill(const TensorRef& out, const std::byte* element) {
  const auto size = static_cast<size_t>(elemBytes(out.type->kind()));
  for (int64_t i = 0; i < out.type->elements(); ++i)
    std::memcpy(out.data + static_cast<size_t>(i) * size, element, size);
}

}  // namespace

Status cast(const KernelCall& call) {
  const Type& from = call.inType(0);
  const ElemKind to = call.outType().kind();
  const bool saturate = call.attrs.flag("saturate");
  const std::string& mode = call.attrs.word("rounding");
  const ScaleRounding rounding = mode == "up"     ? ScaleRounding::Up
                                 : mode == "down" ? ScaleRounding::Down
                                                  : ScaleRounding::Nearest;
  inDomain(domainOf(from.kind()), [&](auto zero) {
    std::array<decltype(zero), 1024> values;
    constexpr auto kChunk = static_cast<int64_t>(values.size());
    for (int64_t first = 0; first < from.elements(); first += kChunk) {
      const int64_t count = std::min(kChunk, from.elements() - first);
      widen(from.kind(), call.inData(0), first, count, 1, values.data());
      narrow(to, values.data(), count, call.outData(), first, saturate, rounding);
    }
  });
  return {};
}

Status splat(const KernelCall& call) {
  std::array<std::byte, 8> element;
  const double value = call.attrs.real("value");
  narrow(call.outType().kind(), &value, 1, element.data(), 0);
  fill(call.out[0], element.data());
  return {};
}

Status transpose(const KernelCall& call) {
  const Shape& y = call.outType().shape();
  const std::vector<int64_t> strides = call.inType(0).shape().strides();
  std::vector<int64_t> permuted;
  for (const int64_t axis : call.attrs.ints("perm")) permuted.push_back(strides[static_cast<size_t>(axis)]);
  copyStrided(y.dims(), elemBytes(call.outType().kind()), call.inData(0), permuted, call.outData(), y.strides());
  return {};
}

Status slice(const KernelCall& call) {
  const Shape& y = call.outType().shape();
  if (y.elements() == 0) return {};
  const int bytes = elemBytes(call.outType().kind());
  const std::vector<int64_t> steps = filled(call.attrs.ints("steps"), y.rank(), 1);
  std::vector<int64_t> strides = call.inType(0).shape().strides();
  const int64_t start = offsetOf(call.attrs.ints("starts"), strides);
  // Along an axis of one element the step is never taken, however far it would go.
  for (int axis = 0; axis < y.rank(); ++axis)
    strides[static_cast<size_t>(axis)] *= y[axis] > 1 ? steps[static_cast<size_t>(axis)] : 0;
  copyStrided(y.dims(), bytes, call.inData(0) + start * bytes, strides, call.outData(), y.strides());
  return {};
}

Status concat(const KernelCall& call) {
  const Shape& y = call.outType().shape();
  const int axis = static_cast<int>(call.attrs.integer("axis"));
  const int bytes = elemBytes(call.outType().kind());
  const std::vector<int64_t> strides = y.strides();
  int64_t position = 0;
  for (const TensorRef& part : call.in) {
    const Shape& x = part.type->shape();
    copyStrided(x.dims(), bytes, part.data, x.strides(),
                call.outData() + position * strides[static_cast<size_t>(axis)] * bytes, strides);
    position += x[axis];
  }
  return {};
}

Status pad(const KernelCall& call) {
  const Shape& x = call.inType(0).shape();
  const std::vector<int64_t> strides = call.outType().shape().strides();
  const int bytes = elemBytes(call.outType().kind());
  fill(call.out[0], call.inData(1));
  copyStrided(x.dims(), bytes, call.inData(0), x.strides(),
              call.outData() + offsetOf(call.attrs.ints("before"), strides) * bytes, strides);
  return {};
}

}  // namespace aglow::reference
