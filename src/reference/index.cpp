// Reading and writing at computed places. All indices are checked before anything is read or written through them.
#include <fmt/format.h>

#include <cstring>

#include "reference/arithmetic.h"
#include "reference/axis_lines.h"
#include "reference/reference.h"

namespace aglow::reference {

namespace {

Result<std::vector<int64_t>> checkedIndices(const TensorRef& indices, int64_t axis, int64_t extent) {
  std::vector<int64_t> positions = widened<int64_t>(indices);
  for (int64_t& position : positions) {
    if (position < -extent || position >= extent)
      return Error{Code::RuntimeValue,
                   fmt::format("index {} lies outside of axis {}, whose extent is {}", position, axis, extent)};
    if (position < 0) position += extent;
  }
  return positions;
}

// Combined in the domain and rounded once, however many updates meet at an element.
template <class D, class F>
void combineRows(const KernelCall& call, const std::vector<int64_t>& rows, int64_t rowSize, F f) {
  std::vector<D> values = widened<D>(call.in[0]);
  std::vector<D> update(static_cast<size_t>(rowSize));
  for (size_t i = 0; i < rows.size(); ++i) {
    widen(call.inType(2).kind(), call.inData(2), static_cast<int64_t>(i) * rowSize, rowSize, 1, update.data());
    D* row = values.data() + rows[i] * rowSize;
    for (int64_t j = 0; j < rowSize; ++j) row[j] = f(row[j], update[static_cast<size_t>(j)]);
  }
  store(call.out[0], values);
}

void replaceRows(const KernelCall& call, const std::vector<int64_t>& rows, int64_t rowSize) {
  const auto bytes = static_cast<size_t>(rowSize * elemBytes(call.outType().kind()));
  if (call.outData() != call.inData(0))
    std::memcpy(call.outData(), call.inData(0), static_cast<size_t>(call.outType().bytes()));
  for (size_t i = 0; i < rows.size(); ++i)
    std::memcpy(call.outData() + static_cast<size_t>(rows[i]) * bytes, call.inData(2) + i * bytes, bytes);
}

}  // namespace

Status gather(const KernelCall& call) {
  const int64_t axis = call.attrs.integer("axis");
  const AxisLines lines(call.inType(0).shape(), axis);
  AGLOW_TRY(const std::vector<int64_t> positions, checkedIndices(call.in[1], axis, lines.extent));
  const auto bytes = static_cast<size_t>(lines.stride * elemBytes(call.outType().kind()));
  std::byte* to = call.outData();
  for (int64_t outer = 0; outer < lines.outer; ++outer) {
    const std::byte* block = call.inData(0) + static_cast<size_t>(outer * lines.extent) * bytes;
    for (const int64_t position : positions) {
      std::memcpy(to, block + static_cast<size_t>(position) * bytes, bytes);
      to += bytes;
    }
  }
  return {};
}

Status scatter(const KernelCall& call) {
  const AxisLines rows(call.inType(0).shape(), 0);
  AGLOW_TRY(const std::vector<int64_t> positions, checkedIndices(call.in[1], 0, rows.extent));
  const std::string& reduction = call.attrs.word("reduction");
  if (reduction == "none") {
    replaceRows(call, positions, rows.stride);
    return {};
  }
  inDomain(domainOf(call.outType().kind()), [&](auto zero) {
    using D = decltype(zero);
    if (reduction == "add") return combineRows<D>(call, positions, rows.stride, sum<D>);
    if (reduction == "mul") return combineRows<D>(call, positions, rows.stride, product<D>);
    if (reduction == "max") return combineRows<D>(call, positions, rows.stride, larger<D>);
    return combineRows<D>(call, positions, rows.stride, smaller<D>);
  });
  return {};
}

}  // namespace aglow::reference
