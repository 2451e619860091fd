// What a function of a model takes and gives, in its own order and under its own names, and the placeholders that stand
// for it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/error.h"
#include "tensor/map_value.h"
#include "tensor/type.h"

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
  std::string function;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
};

// The number of the function that is meant: by its name or, where none is wanted, the only one or the one named main.
// Usage error with the names there are.
Result<size_t> chooseFunction(std::span<const std::string> names, std::string_view wanted);

}  // namespace aglow
