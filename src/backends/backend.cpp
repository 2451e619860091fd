// What backends share: binding of tensors to placeholders, and the check of a program's memory against the limit.
#include "backends/backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/quote.h"
#include "support/sizes.h"

namespace aglow {

namespace {

std::string listOf(std::span<const Binding> bindings) {
  constexpr size_t kShown = 10;
  std::string text;
  for (size_t i = 0; i < std::min(bindings.size(), kShown); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", quoted(bindings[i].name), bindings[i].type.text());
  if (bindings.size() > kShown) text += fmt::format(" and {} more", bindings.size() - kShown);
  return text.empty() ? "nothing" : text;
}

Status checkType(const Binding& binding, const Tensor& tensor) {
  if (!tensor.empty() && tensor.type() == binding.type) return {};
  return Error{.code = Code::BadBinding,
               .message = fmt::format("expected {}, got {}", binding.type.text(),
                                      tensor.empty() ? "nothing" : tensor.type().text()),
               .where = fmt::format("input {}", quoted(binding.name))};
}

}  // namespace

Status checkBound(std::span<const Binding> bindings, std::span<const Tensor> tensors) {
  if (bindings.size() != tensors.size())
    return Error{.code = Code::BadBinding,
                 .message = fmt::format("expected {} inputs, got {}", bindings.size(), tensors.size()),
                 .hint = "the program takes " + listOf(bindings)};
  for (size_t i = 0; i < bindings.size(); ++i) AGLOW_OK(checkType(bindings[i], tensors[i]));
  return {};
}

Result<std::vector<Tensor>> bindByName(std::span<const Binding> bindings, const std::map<std::string, Tensor>& named) {
  for (const auto& [name, tensor] : named) {
    const bool known = std::any_of(bindings.begin(), bindings.end(), [&](const Binding& b) { return b.name == name; });
    if (!known)
      return Error{.code = Code::BadBinding,
                   .message = fmt::format("there is no input {}", quoted(name)),
                   .hint = "the program takes " + listOf(bindings)};
  }
  std::vector<Tensor> tensors;
  for (const Binding& binding : bindings) {
    const auto it = named.find(binding.name);
    if (it == named.end())
      return Error{
          .code = Code::MissingBinding,
          .message = fmt::format("input {} of type {} was not given", quoted(binding.name), binding.type.text())};
    AGLOW_OK(checkType(binding, it->second));
    tensors.push_back(it->second);
  }
  return tensors;
}

std::vector<Binding> bindingsOf(const Program& program, std::span<const RegionId> placeholders) {
  std::vector<Binding> bindings;
  for (const RegionId id : placeholders) bindings.push_back({program[id].name, program[id].type});
  return bindings;
}

Status checkMemory(const Program& program, const BackendOptions& options) {
  const auto needed = checkedAdd(program.arenaBytes, program.declaredBytes());
  if (options.memoryLimit <= 0 || (needed && *needed <= options.memoryLimit)) return {};
  return Error{.code = Code::TooLarge,
               .message = fmt::format("{} bytes are needed ({} for intermediate results, {} for constants, inputs and "
                                      "outputs), {} are allowed",
                                      needed ? fmt::to_string(*needed) : "more than 2^63", program.arenaBytes,
                                      program.declaredBytes(), options.memoryLimit)};
}

}  // namespace aglow
