#include "train/data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "support/hash.h"
#include "support/quote.h"
#include "support/rng.h"
#include "support/suggest.h"
#include "tensor/convert.h"

namespace aglow {

namespace {

Error unfit(std::string message, std::string hint = {}) {
  return {.code = Code::BadBinding, .message = std::move(message), .where = {}, .hint = std::move(hint)};
}

Tensor converted(const Tensor& from, ElemKind kind) {
  if (from.type().kind() == kind) return from;
  Tensor to(from.type().withKind(kind));
  const TensorRef place{&to.type(), to.mutableData()};
  inDomain(domainOf(kind), [&](auto domain) { store(place, widened<decltype(domain)>(from.ref())); });
  return to;
}

// "f32[N,1,28,28]"
std::string rowsText(const Type& type) {
  std::string text = fmt::format("{}[N", elemName(type.kind()));
  for (int i = 1; i < type.rank(); ++i) text += fmt::format(",{}", type.dim(i));
  return text + "]";
}

Status checkRows(const std::string& what, const Tensor& array, const Type& wanted, int64_t samples) {
  const Type& type = array.type();
  bool same = type.kind() == wanted.kind() && type.rank() == wanted.rank() && type.rank() > 0;
  for (int i = 1; same && i < type.rank(); ++i) same = type.dim(i) == wanted.dim(i);
  if (!same) return unfit(fmt::format("expected {} for {}, got {}", rowsText(wanted), what, type.text()));
  if (type.dim(0) != samples)
    return unfit(fmt::format("{} has {} samples, but the target has {}", what, type.dim(0), samples));
  return {};
}

Status checkLabels(const Tensor& labels, int64_t classes) {
  const std::vector<int64_t> values = labels.toInts();
  const int64_t perSample = labels.type().elements() / std::max<int64_t>(labels.type().dim(0), 1);
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] < 0 || values[i] >= classes)
      return unfit(fmt::format("label {} of sample {} is out of range: expected 0 to {}", values[i],
                               static_cast<int64_t>(i) / std::max<int64_t>(perSample, 1), classes - 1),
                   fmt::format("the model tells {} classes apart", classes));
  return {};
}

}  // namespace

Result<CheckedData> checkData(const Dataset& data, const TrainingModule& module) {
  CheckedData checked{.arrays = {}, .samples = data.samples()};
  if (checked.samples < 1) return unfit("there are no samples: the target has no rows");
  std::vector<std::string_view> names;
  for (const SampleInput& input : module.inputs) names.push_back(input.name);
  for (const auto& [name, array] : data.inputs)
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      std::string hint = didYouMean(name, names);
      if (hint.empty()) hint = fmt::format("its inputs are {}", fmt::join(names, ", "));
      return unfit(fmt::format("the model has no input {}", quoted(name)), std::move(hint));
    }
  for (const SampleInput& input : module.inputs) {
    const auto it = data.inputs.find(input.name);
    if (it == data.inputs.end())
      return Error{
          .code = Code::MissingBinding,
          .message = fmt::format("no samples are given for input {} ({})", quoted(input.name), rowsText(input.type))};
    AGLOW_OK(checkRows(fmt::format("input {}", quoted(input.name)), it->second, input.type, checked.samples));
    checked.arrays[input.placeholder] = it->second;
  }
  const Type& wanted = module.module->findStorage(module.loss.target)->type();
  const ElemKind given = data.target.type().kind();
  const bool fits = module.loss.classes > 0 ? isInteger(given) : isFloat(given);
  const Tensor target = fits ? converted(data.target, wanted.kind()) : data.target;
  AGLOW_OK(checkRows("the target", target, wanted, checked.samples));
  if (module.loss.classes > 0) AGLOW_OK(checkLabels(target, module.loss.classes));
  checked.arrays[module.loss.target] = target;
  return checked;
}

std::vector<int64_t> orderOf(int64_t samples, bool shuffle, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  if (!shuffle) return order;
  Rng rng(mixHash(mixHash(0, seed), static_cast<uint64_t>(epoch)));
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<size_t>(rng.between(0, static_cast<int64_t>(i) - 1))]);
  return order;
}

void gatherRows(const Tensor& array, std::span<const int64_t> rows, Tensor& into) {
  const int64_t bytes = array.bytes() / array.type().dim(0);
  std::byte* to = into.mutableData();
  for (int64_t i = 0; i < into.type().dim(0); ++i) {
    const int64_t row = rows[static_cast<size_t>(i) % rows.size()];
    std::memcpy(to + i * bytes, array.data() + row * bytes, static_cast<size_t>(bytes));
  }
}

}  // namespace aglow
