// The table of precisions.
#include <fmt/format.h>

#include "quant/choose.h"
#include "quant/narrow.h"

namespace aglow::quant {

std::span<const Precision> precisions() {
  static constexpr Precision kRows[] = {
      {"int8", "integers of 8 bits where a profile has ranges", nullptr, 1.0 / 32},
      {"bf16", "products of bf16 with sums in f32", useHalves, 1.0 / 128},
      {"fp16", "products and what stands between them in f16, with sums in f32", useFloat16, 1.0 / 256},
      {"int8-weights", "weights of matrix products as integers of 8 bits, all else as it is",
       [](Function& f, const Names& kept) { return quantizeWeightsOnly(f, kept, 8); }},
      {"int4-weights", "weights of matrix products as integers of 4 bits, all else as it is",
       [](Function& f, const Names& kept) { return quantizeWeightsOnly(f, kept, 4); }},
  };
  return kRows;
}

Result<std::shared_ptr<const Request>> requestOf(std::string_view precision,
                                                 const std::vector<std::string>& keepFloat) {
  std::vector<std::string_view> names;
  for (const Precision& row : precisions()) {
    if (row.apply == nullptr) continue;
    names.push_back(row.name);
    if (row.name != precision) continue;
    auto request = std::make_shared<Request>();
    request->precision = &row;
    request->keepFloat.insert(keepFloat.begin(), keepFloat.end());
    return std::shared_ptr<const Request>(std::move(request));
  }
  return Error{.code = Code::Usage,
               .message = fmt::format("'{}' is not a precision that needs no profile", precision),
               .where = {},
               .hint = fmt::format("there are: {}", fmt::join(names, ", "))};
}

Result<bool> narrow(Function& function, const Request& request) {
  AGLOW_OK(checkKept(function, request.keepFloat));
  return request.precision->apply(function, request.keepFloat);
}

}  // namespace aglow::quant
