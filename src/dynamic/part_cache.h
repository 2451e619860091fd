// Parts of a model, compiled for what they met, kept by everything their code depends on. Bounded: the ones not used
// for longest go. Safe from several threads; each part is made once, while others wait for it.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/backend.h"
#include "graph/interface.h"
#include "import/onnx/parts.h"
#include "support/fork.h"

namespace aglow {

// Nodes of a graph that are still to be run, and whose values shapes among them depend on.
struct Remainder;

struct Part {
  // Where an input of the executable comes from: a value by name, and which item where it is a sequence.
  struct Source {
    std::string name;
    size_t item = 0;
  };
  std::unique_ptr<Executable> executable;  // none where there is nothing to compute
  std::vector<Source> inputs;
  std::vector<Port> outputs;        // what it computes, by the values' names
  std::vector<std::string> bound;   // placeholders of the executable's outputs, in order
  onnx::KnownValues constants;      // values that need no run
  onnx::KnownValues context;        // constants that the code depends on: kept alive, because keys hold addresses
  std::vector<size_t> alone;        // nodes to be run behind it, each by itself
  Remainder* next = nullptr;        // none: the graph is done
  std::vector<std::string> freeze;  // nothing was made: the values of these decide
  // Memory of earlier outputs, taken again once nobody else holds it: the state of a loop goes back and forth.
  std::vector<std::vector<Tensor>> spare;
  ForkMutex running;  // an executable runs once at a time
};

class PartCache {
public:
  explicit PartCache(size_t limit) : limit_(limit) {}

  // What is under the key, or what `make` makes of it. A part that cannot be made is not kept.
  template <class Make>
  Diagnosed<std::shared_ptr<Part>> findOrMake(const std::string& key, const Make& make) {
    const std::shared_ptr<Slot> slot = take(key);
    const std::lock_guard lock(slot->making);
    if (slot->part) return slot->part;
    Diagnosed<std::shared_ptr<Part>> made = make();
    if (made.ok()) slot->part = *made;
    return made;
  }
  size_t size() const;

private:
  struct Slot {
    ForkMutex making;
    std::shared_ptr<Part> part;
    std::list<std::string>::iterator place;
  };

  // The slot, as the one used last.
  std::shared_ptr<Slot> take(const std::string& key);

  mutable std::mutex mutex_;
  size_t limit_;
  std::list<std::string> order_;  // used last comes first
  std::unordered_map<std::string, std::shared_ptr<Slot>> slots_;
};

}  // namespace aglow
