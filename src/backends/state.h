// The state of a loaded module: memory that begins with given values and stays from run to run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inst/program.h"
#include "support/turnstile.h"

namespace aglow {

struct Binding {
  std::string name;
  Type type;
};

// One place per region of state that the programs declare, whichever of them touch it. Safe from several threads: what
// reads it sees it as it is between two changes.
class State {
public:
  explicit State(std::span<const Program> programs);

  // In the programs' order.
  std::span<const Binding> bindings() const { return bindings_; }
  // The number of a name; none: bindings().size().
  size_t find(std::string_view name) const;
  int64_t bytes() const;

  // A copy of the bytes, and other bytes in their place; BadBinding where the type is another.
  Tensor read(size_t index);
  Status write(size_t index, const TensorRef& value);
  // The initial values again.
  void reset();

  // Where the bytes are, which stays the same. Whoever uses them has a turn.
  std::byte* address(std::string_view name);
  SharedTurns& turns() { return turns_; }

private:
  void setInitial();

  std::vector<Binding> bindings_;
  std::vector<Region> initial_;
  std::vector<Tensor> values_;
  SharedTurns turns_;
};

// How a program uses state.
SharedTurns::Use stateUse(const Program& program);

}  // namespace aglow
