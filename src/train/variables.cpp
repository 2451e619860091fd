#include "train/variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "import/onnx/departures.h"
#include "support/quote.h"
#include "support/suggest.h"

namespace aglow {

namespace {

// Operands that are floats, but no parameters: statistics that are measured, and what decides what an operator does.
struct Fixed {
  std::string_view op;
  int firstOperand, lastOperand;
};
constexpr Fixed kFixed[] = {
    {"BatchNormalization", 3, 4}, {"Clip", 1, 2}, {"Resize", 1, 3}, {"Upsample", 1, 1}, {"QuantizeLinear", 1, 1},
    {"DequantizeLinear", 1, 1},   {"Pad", 2, 2},  {"OneHot", 0, 2}, {"Range", 0, 2},
};

bool isTrainable(int32_t dataType) {
  const std::optional<ElemKind> kind = elemKindByOnnx(dataType);
  return kind && isFloat(*kind) && elemInfo(*kind).bits >= 16;
}

bool fits(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() == '*') {
    for (size_t skip = 0; skip <= name.size(); ++skip)
      if (fits(pattern.substr(1), name.substr(skip))) return true;
    return false;
  }
  return !name.empty() && (pattern.front() == '?' || pattern.front() == name.front()) &&
         fits(pattern.substr(1), name.substr(1));
}

bool isPattern(const std::string& text) { return text.find_first_of("*?") != std::string::npos; }

}  // namespace

std::vector<std::string> trainableNames(const onnx::Model& model) {
  std::set<std::string> fixed, used;
  for (const onnx::Node& node : model.graph.nodes) {
    const auto row =
        std::find_if(std::begin(kFixed), std::end(kFixed), [&](const Fixed& f) { return f.op == node.opType; });
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto at = static_cast<int>(i);
      used.insert(node.inputs[i]);
      if (row != std::end(kFixed) && at >= row->firstOperand && at <= row->lastOperand) fixed.insert(node.inputs[i]);
    }
  }
  std::vector<std::string> names;
  const auto add = [&](const std::string& name, const onnx::TensorProto& tensor) {
    const bool isParameter = isTrainable(tensor.dataType) && !tensor.dims.empty();
    if (isParameter && used.contains(name) && !fixed.contains(name)) names.push_back(name);
  };
  for (const onnx::TensorProto& tensor : model.graph.initializers) add(tensor.name, tensor);
  for (const onnx::Node& node : model.graph.nodes)
    if (const onnx::Attribute* value = onnx::constantValue(node); value != nullptr && value->t && !node.outputs.empty())
      add(node.outputs[0], *value->t);
  return names;
}

std::vector<std::string> trainableNames(const Module& module) {
  std::vector<std::string> names;
  for (const auto& node : module.storage())
    if (initialBytes(*node) != nullptr && isFloat(node->type().kind()) && node->type().rank() > 0 &&
        !node->uses().empty())
      names.push_back(node->name());
  return names;
}

Result<ChosenVariables> chooseVariables(const std::vector<std::string>& patterns,
                                        const std::vector<std::string>& trainable,
                                        const std::vector<std::string>& others) {
  ChosenVariables chosen;
  std::set<std::string> without;
  std::string unknown, hint;
  for (const std::string& word : patterns) {
    const bool takesOut = word.starts_with("!");
    const std::string pattern = word == "all" ? "*" : takesOut ? word.substr(1) : word;
    std::set<std::string>& into = takesOut ? without : chosen.names;
    bool found = false;
    for (const std::string& name : trainable)
      if (isPattern(pattern) ? fits(pattern, name) : pattern == name) {
        into.insert(name);
        found = true;
      }
    if (!isPattern(pattern) && !takesOut) chosen.byName.insert(pattern);
    if (!found && std::find(others.begin(), others.end(), pattern) != others.end()) {
      into.insert(pattern);
      found = true;
    }
    if (found) continue;
    unknown += fmt::format("{}{}", unknown.empty() ? "" : ", ", quoted(word));
    const std::vector<std::string_view> names(trainable.begin(), trainable.end());
    if (hint.empty()) hint = didYouMean(pattern, names);
  }
  if (!unknown.empty()) {
    constexpr size_t kShown = 8;
    if (hint.empty()) {
      for (size_t i = 0; i < std::min(trainable.size(), kShown); ++i)
        hint += fmt::format("{}{}", hint.empty() ? "the model has " : ", ", quoted(trainable[i]));
      if (trainable.size() > kShown) hint += fmt::format(" and {} more", trainable.size() - kShown);
    }
    return Error{.code = Code::Usage,
                 .message = trainable.empty() ? "the model has no constants of floats that could be trained"
                                              : fmt::format("there is no variable {}", unknown),
                 .where = {},
                 .hint = std::move(hint)};
  }
  for (const std::string& name : without) {
    chosen.names.erase(name);
    chosen.byName.erase(name);
  }
  if (chosen.names.empty())
    return Error{.code = Code::Usage, .message = "nothing of the model is left that could be trained"};
  return chosen;
}

}  // namespace aglow
