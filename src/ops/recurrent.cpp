// Activation functions of recurrent operators by name.
#include "ops/recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "ops/type_rules_support.h"
#include "support/words.h"

namespace aglow {

namespace {

using Kind = Activation::Kind;

constexpr ActivationInfo kActivations[] = {
    {Kind::Relu, "Relu", 0, 0, 0},
    {Kind::Tanh, "Tanh", 0, 0, 0},
    {Kind::Sigmoid, "Sigmoid", 0, 0, 0},
    {Kind::Affine, "Affine", 2, 1, 0},
    {Kind::LeakyRelu, "LeakyRelu", 1, 0.01, 0},
    {Kind::ThresholdedRelu, "ThresholdedRelu", 1, 1, 0},
    {Kind::ScaledTanh, "ScaledTanh", 2, 1, 1},
    {Kind::HardSigmoid, "HardSigmoid", 2, 0.2, 0.5},
    {Kind::Elu, "Elu", 1, 1, 0},
    {Kind::Softsign, "Softsign", 0, 0, 0},
    {Kind::Softplus, "Softplus", 0, 0, 0},
};

bool equalInAnyCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

const ActivationInfo* findActivation(std::string_view name) {
  for (const ActivationInfo& info : kActivations)
    if (equalInAnyCase(info.name, name)) return &info;
  return nullptr;
}

int64_t directionsOf(const Attrs& attrs) { return attrs.word("direction") == "bidirectional" ? 2 : 1; }

std::string_view defaultActivations(const OpDef& op) {
  const auto isThem = [](const AttrDef& attr) { return attr.name == "activations"; };
  return std::find_if(op.attrs.begin(), op.attrs.end(), isThem)->whenEmpty;
}

Result<std::vector<Activation>> activationsOf(const Attrs& attrs) {
  const std::vector<std::string_view> defaults = splitAtCommas(defaultActivations(attrs.op()));
  const std::vector<double>&alpha = attrs.reals("alpha"), &beta = attrs.reals("beta");
  const size_t expected = defaults.size() * static_cast<size_t>(directionsOf(attrs));
  std::vector<std::string_view> names = splitAtCommas(attrs.word("activations"));
  if (names.empty())
    for (size_t i = 0; i < expected; ++i) names.push_back(defaults[i % defaults.size()]);
  if (names.size() != expected)
    return infer::badNode(
        fmt::format("expected {} functions in 'activations', got '{}'", expected, attrs.word("activations")));
  if ((!alpha.empty() && alpha.size() != expected) || (!beta.empty() && beta.size() != expected))
    return infer::badNode(fmt::format("expected {} entries or none in 'alpha' and 'beta', got {} and {}", expected,
                                      alpha.size(), beta.size()));
  std::vector<Activation> activations;
  for (size_t i = 0; i < names.size(); ++i) {
    const ActivationInfo* info = findActivation(names[i]);
    if (info == nullptr)
      return infer::badNode(fmt::format("expected a known function in 'activations', got '{}'", names[i]));
    activations.push_back({info->kind, alpha.empty() ? info->alpha : alpha[i], beta.empty() ? info->beta : beta[i]});
  }
  return activations;
}

}  // namespace aglow
