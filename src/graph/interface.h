// What a model takes and gives, in its own order and under its own names, and the placeholders that stand for it.
#pragma once

#include <string>
#include <vector>

#include "tensor/type.h"

namespace aglow {

// A tensor, a sequence of them, or an optional. A frozen input became part of the program: its value decided a shape.
struct Port {
  enum class Kind : uint8_t { Tensor, Sequence, None, Frozen };
  Kind kind = Kind::Tensor;
  std::string name;         // the model's
  std::string placeholder;  // Tensor: storage of the module
  Type type;                // Tensor, Frozen
  std::vector<Port> items;  // Sequence
};

struct Interface {
  std::vector<Port> inputs;
  std::vector<Port> outputs;
};

}  // namespace aglow
