#include "quant/choose.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/suggest.h"

namespace aglow::quant {

namespace {

Error usage(std::string message, std::string hint) {
  return {.code = Code::Usage, .message = std::move(message), .where = {}, .hint = std::move(hint)};
}

constexpr std::string_view kAgain = "make the profile again from this model, with `aglow profile`";

Status checkModel(const Function& function, const Profile& profile) {
  const uint64_t here = fingerprintOf(function);
  if (here == profile.model) return {};
  return usage(
      fmt::format("the profile is of another model: it is of {:016x}, and this is {:016x}", profile.model, here),
      std::string(kAgain));
}

}  // namespace

// Names to keep are of nodes, or of operators.
Status checkKept(const Function& function, const Names& kept) {
  std::vector<std::string_view> names = quantizedOperators();
  for (const auto& node : function.nodes())
    if (roleOf(*node) != Role::Float) names.emplace_back(node->name());
  for (const std::string& name : kept) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    std::string hint = didYouMean(name, names);
    if (hint.empty()) hint = "`aglow inspect MODEL --explain` lists the nodes; operators are named as in `aglow ops`";
    return usage(fmt::format("nothing that could be quantized is named '{}'", name), std::move(hint));
  }
  return {};
}

Status checkRequest(const Function& function, const Islands& islands, const Request& request) {
  if (!islands.values.empty()) AGLOW_OK(checkModel(function, request.profile));
  return checkKept(function, request.keepFloat);
}

Result<Chosen> Chosen::create(const Islands& islands, const Profile& profile, const Request& request) {
  Chosen chosen;
  std::unordered_map<size_t, ValueProfile> known;  // of each group, from all its values
  for (const Value value : islands.values) {
    const std::string name = nameOf(value);
    const auto found = profile.values.find(name);
    if (found == profile.values.end())
      return usage(fmt::format("the profile says nothing of '{}'", name), std::string(kAgain));
    known[islands.group.at(value)].add(found->second);
  }
  std::unordered_map<size_t, Parameters> byGroup;
  for (const auto& [group, seen] : known)
    byGroup[group] = parametersFor(request.calibration.choose(seen, levelsOf(*request.schema)), *request.schema);
  for (const Value value : islands.values) chosen.byValue_[value] = byGroup.at(islands.group.at(value));
  return chosen;
}

const Parameters* Chosen::find(Value value) const {
  const auto it = byValue_.find(value);
  return it == byValue_.end() ? nullptr : &it->second;
}

}  // namespace aglow::quant
