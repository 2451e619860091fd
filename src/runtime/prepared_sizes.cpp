#include "runtime/prepared_sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "tensor/slices.h"

namespace aglow {

namespace {

constexpr size_t kMostCombinations = 64;

}  // namespace

Result<PreparedSizes> PreparedSizes::create(std::map<std::string, std::vector<int64_t>> sizes) {
  PreparedSizes prepared;
  for (auto& [name, all] : sizes) {
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::vector<NamedSizes> next;
    for (const NamedSizes& chosen : prepared.combinations_)
      for (const int64_t size : all) {
        next.push_back(chosen);
        next.back()[name] = size;
      }
    if (next.size() > kMostCombinations)
      return Error{.code = Code::LimitReached,
                   .message = fmt::format("more than {} combinations of sizes to prepare", kMostCombinations)};
    prepared.combinations_ = std::move(next);
  }
  prepared.sizes_ = std::move(sizes);
  return prepared;
}

NamedSizes PreparedSizes::padded(const NamedSizes& sizes) const {
  NamedSizes padded;
  for (const auto& [name, prepared] : sizes_) {
    const auto size = sizes.find(name);
    if (size == sizes.end()) continue;
    const auto next = std::lower_bound(prepared.begin(), prepared.end(), size->second);
    if (next != prepared.end() && *next != size->second) padded[name] = *next;
  }
  return padded;
}

Tensor withSizes(const Tensor& tensor, std::span<const std::string> names, const NamedSizes& sizes) {
  const std::vector<int64_t>& dims = tensor.type().shape().dims();
  std::vector<int64_t> to = dims;
  for (size_t i = 0; i < std::min(dims.size(), names.size()); ++i)
    if (const auto it = sizes.find(names[i]); it != sizes.end() && !names[i].empty()) to[i] = it->second;
  return to == dims ? tensor : resized(tensor, to);
}

}  // namespace aglow
