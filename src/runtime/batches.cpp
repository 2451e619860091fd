#include "runtime/batches.h"

#include <fmt/format.h>

#include <cstring>

#include "runtime/key.h"
#include "support/quote.h"

namespace aglow {

namespace {

Type withRows(const Type& type, int64_t rows) {
  std::vector<int64_t> dims = type.shape().dims();
  dims.front() = rows;
  return type.withShape(Shape(std::move(dims)));
}

int64_t rowBytes(const Tensor& tensor) {
  const int64_t rows = tensor.type().dim(0);
  return rows == 0 ? 0 : tensor.bytes() / rows;
}

}  // namespace

Result<int64_t> rowsOf(const Values& values) {
  int64_t rows = -1;
  for (const auto& [name, value] : values) {
    const bool fits = value.isTensor() && value.tensor().type().rank() > 0 && value.tensor().type().dim(0) > 0 &&
                      (rows < 0 || rows == value.tensor().type().dim(0));
    if (!fits)
      return Error{.code = Code::BadBinding,
                   .message = fmt::format("input {} is {}; requests that are joined row by row have tensors with the "
                                          "same number of rows, at least one",
                                          quoted(name), value.text())};
    rows = value.tensor().type().dim(0);
  }
  if (rows < 0) return Error{.code = Code::MissingBinding, .message = "no input was given"};
  return rows;
}

std::string rowKeyOf(const Values& values) {
  Key key;
  for (const auto& [name, value] : values) {
    key.add(name);
    key.add(withRows(value.tensor().type(), 1));
  }
  return key.bytes();
}

Values joinRows(std::span<const Values* const> requests, int64_t rows) {
  Values joined;
  for (const auto& [name, first] : *requests.front()) {
    if (requests.size() == 1 && first.tensor().type().dim(0) == rows) {
      joined.emplace(name, first);
      continue;
    }
    Tensor all(withRows(first.tensor().type(), rows));  // zeroed
    std::byte* to = all.mutableData();
    for (const Values* request : requests) {
      const Tensor& tensor = request->at(name).tensor();
      std::memcpy(to, tensor.data(), static_cast<size_t>(tensor.bytes()));
      to += tensor.bytes();
    }
    joined.emplace(name, ModelValue::of(std::move(all)));
  }
  return joined;
}

Outputs takeRows(const std::vector<ModelValue>& outputs, int64_t first, int64_t count, int64_t all) {
  std::vector<ModelValue> own;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ModelValue& value = outputs[i];
    if (!value.isTensor() || value.tensor().type().rank() == 0 || value.tensor().type().dim(0) != all)
      return Error{.code = Code::UnsupportedFeature,
                   .message = fmt::format("output {} is {} where the run had {} rows: its rows cannot be shared out", i,
                                          value.text(), all),
                   .where = {},
                   .hint = "add the network without joining requests"};
    if (count == all) {
      own.push_back(value);
      continue;
    }
    // Outputs of one run never share bytes: what one client holds keeps nobody else's alive.
    Tensor rows(withRows(value.tensor().type(), count));
    const int64_t bytes = rowBytes(value.tensor());
    std::memcpy(rows.mutableData(), value.tensor().data() + first * bytes, static_cast<size_t>(count * bytes));
    own.push_back(ModelValue::of(std::move(rows)));
  }
  return own;
}

}  // namespace aglow
