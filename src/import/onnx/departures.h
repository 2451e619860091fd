// Where models depart from the standard in ways that other engines accept, since only one meaning makes sense: such a
// model is read with that meaning, and its user gets a warning.
#pragma once

#include <functional>
#include <optional>

#include "import/onnx/proto.h"
#include "support/diagnostics.h"
#include "tensor/type.h"

namespace aglow::onnx {

// What happens where a model departs from the standard.
struct Tolerance {
  bool strict = false;                         // it is an error
  std::function<void(const Departure&)> warn;  // otherwise called with each, maybe several times; may be empty

  // Nothing where it is accepted.
  std::optional<Error> judge(const Departure& departure) const;
  // Of all that mend() noted.
  Diagnostics judge(const Model& model) const;
};

// Passes each departure on once, however often it is heard; safe from several threads.
std::function<void(const Departure&)> onceEach(std::function<void(const Departure&)> warn);

// The shape of the counter or condition that a loop hands to its body: a scalar, or [1] where the body declares that.
Shape loopInputShape(const ValueInfo& input);

// Gives the model the form that the standard asks for, and notes in `departures` where that takes a change.
void mend(Model& model);

// The value of a Constant node, or null.
const Attribute* constantValue(const Node& node);

}  // namespace aglow::onnx
