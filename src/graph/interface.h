// What a model takes and gives, in its own order and under its own names, and the placeholders that stand for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tensor/map_value.h"

namespace aglow {

// What the numbers of a tensor stand for that a model gives as maps or strings: a program has numbers alone.
struct Labels {
  enum class Of : uint8_t {
    Columns,   // [rows, columns]: each row is a map, the columns are its keys
    Elements,  // elements are positions of strings
  };
  Of of = Of::Columns;
  MapKeys names;
};

// A tensor, a sequence of them, or an optional. A frozen input became part of the program: its value decided a shape.
struct Port {
  enum class Kind : uint8_t { Tensor, Sequence, None, Frozen };
  Kind kind = Kind::Tensor;
  std::string name;                                // the model's
  std::string placeholder;                         // Tensor: storage of the module
  Type type;                                       // Tensor, Frozen
  std::vector<Port> items;                         // Sequence
  std::shared_ptr<const Labels> labels = nullptr;  // Tensor: null where it stands for itself
};

struct Interface {
  std::vector<Port> inputs;
  std::vector<Port> outputs;
};

}  // namespace aglow
