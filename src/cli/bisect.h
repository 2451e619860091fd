// Finds the first node of a model at which two engines part.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/comparison.h"
#include "cli/engines.h"

namespace aglow::cli {

// A value that the node reads: how far the engines are apart there, and what it looks like.
struct OperandFacts {
  ComparisonRow row;
  std::string kind;  // "input", "constant" or "value"
  Statistics statistics;
};

struct Divergence {
  std::string place;    // "node 'conv2' (Conv)", with the way to it from the outside in
  size_t number = 0;    // of its scope's nodes, from 1 on
  size_t nodes = 0;     // in the scope
  ComparisonRow value;  // that differs
  std::vector<OperandFacts> operands;
  std::optional<bool> alone;  // whether the node differs by itself, on the reference's operands; unknown without a try
};

struct Bisection {
  std::optional<Divergence> found;
  size_t compared = 0;               // values
  std::vector<std::string> skipped;  // values that one engine could not show
};

// Compares values in the order of the nodes, some at a time, until one differs. Goes into the model's own functions and
// the branches of If. The engines are for the model.
Bisection bisect(const onnx::Model& model, Engine& tested, Engine& reference, const ModelValues& inputs,
                 const Tolerances& tolerances);

std::string toText(const Bisection& bisection, const Engine& tested, const Engine& reference);
nlohmann::json toJson(const Bisection& bisection);

}  // namespace aglow::cli
