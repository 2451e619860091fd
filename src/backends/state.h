// The state of a loaded module: memory that begins with given values and stays from run to run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inst/program.h"

namespace aglow {

struct Binding {
  std::string name;
  Type type;
};

// One place per region of state that the programs declare, whichever of them touch it. Not to be used while a run is
// under way.
class State {
public:
  State() = default;
  explicit State(std::span<const Program> programs);

  // In the programs' order.
  std::span<const Binding> bindings() const { return bindings_; }
  // The number of a name; none: bindings().size().
  size_t find(std::string_view name) const;
  int64_t bytes() const;

  // A copy of the bytes, and other bytes in their place; BadBinding where the type is another.
  Tensor read(size_t index) const;
  Status write(size_t index, const TensorRef& value);
  // The initial values again.
  void reset();

  // Where the bytes are, which stays the same.
  std::byte* address(std::string_view name);

private:
  std::vector<Binding> bindings_;
  std::vector<Region> initial_;
  std::vector<Tensor> values_;
};

}  // namespace aglow
