// What the type rules and the lowerings of RNN, GRU and LSTM read from the attributes: directions and activations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/attrs.h"
#include "support/error.h"

namespace aglow {

// The functions that recurrent operators may apply; alpha and beta where the function has them.
struct Activation {
  enum class Kind : uint8_t {
    Relu,
    Tanh,
    Sigmoid,
    Affine,
    LeakyRelu,
    ThresholdedRelu,
    ScaledTanh,
    HardSigmoid,
    Elu,
    Softsign,
    Softplus,
  };
  Kind kind;
  double alpha = 0, beta = 0;
};

// One function by its name in any letter case, with its default parameters.
struct ActivationInfo {
  Activation::Kind kind;
  std::string_view name;
  int parameters;  // 0, alpha, or alpha and beta
  double alpha, beta;
};
const ActivationInfo* findActivation(std::string_view name);

// The functions of one direction where `activations` is empty: "Sigmoid,Tanh,Tanh".
std::string_view defaultActivations(const OpDef& op);

// Reads `activations` (those of the first direction, then those of the second), `alpha` and `beta` (one entry a
// function, or none for the defaults). BadNode unless there are as many as the operator's directions ask for.
Result<std::vector<Activation>> activationsOf(const Attrs& attrs);

// 2 for `bidirectional`, else 1.
int64_t directionsOf(const Attrs& attrs);

}  // namespace aglow
