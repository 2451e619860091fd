// The state of a loaded module: memory that begins with given values and stays from run to run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inst/program.h"
#include "support/error.h"
#include "support/fork.h"
#include "support/turnstile.h"

namespace aglow {

struct Binding {
  std::string name;
  Type type;
};

// A device that has state in memory of its own. Both wait until the bytes are there.
class StateDevice {
public:
  virtual ~StateDevice() = default;
  virtual Status toDevice(size_t index, const std::byte* bytes) = 0;
  virtual Status toHost(size_t index, std::byte* bytes) = 0;
};

// One place per region of state that the programs declare, whichever of them touch it. Safe from several threads: what
// reads it sees it as it is between two changes. Where runs change it on a device it stays there, and comes back, one
// region at a time, to whoever reads it.
class State {
public:
  explicit State(std::span<const Program> programs);

  // In the programs' order.
  std::span<const Binding> bindings() const { return bindings_; }
  // The number of a name; none: bindings().size().
  size_t find(std::string_view name) const;
  int64_t bytes() const;

  // A copy of the bytes, and other bytes in their place; BadBinding where the type is another. What is on a device
  // comes with its faults.
  Result<Tensor> read(size_t index);
  Status write(size_t index, const TensorRef& value);
  // The initial values again.
  void reset();

  // Where the bytes are, which stays the same. Whoever uses them has a turn.
  std::byte* address(std::string_view name);
  SharedTurns& turns() { return turns_; }

  // Around runs on a device that use it, by those who have a turn: the device gets what the host has changed; and what
  // the host has is old, because the run has written.
  Status bringTo(StateDevice& device);
  void leftOn(StateDevice& device);

private:
  void setInitial();

  std::vector<Binding> bindings_;
  std::vector<Region> initial_;
  std::vector<Tensor> values_;
  enum class Newest : uint8_t { Host, Both, Device };
  std::vector<Newest> newest_;     // who has the bytes as they are now
  StateDevice* device_ = nullptr;  // the one that has them
  ForkMutex mutex_;                // of what moves between both while several read
  SharedTurns turns_;
};

// How a program uses state.
SharedTurns::Use stateUse(const Program& program);

}  // namespace aglow
