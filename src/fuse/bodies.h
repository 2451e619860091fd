// Which instructions of a program run together, and where.
#pragma once

#include <vector>

#include "fuse/dependences.h"
#include "fuse/policy.h"
#include "inst/fused.h"

namespace aglow {

// Bodies grow from producers to consumers, in the order of the program. A body runs at the place of one of its
// steps: the others are moved down to it as long as nobody between needs their results, or up as far as their
// operands are there. So every order that comes out is valid, and each question looks at the two bodies alone.
// What widens a value that is in memory anyway waits for its reader: the narrow value is less to store and to load.
class Bodies {
public:
  static constexpr size_t kMostSteps = 64;

  struct Body {
    std::vector<int32_t> steps;  // an anchor first, then in the order of the program
    int32_t place = 0;
    int32_t firstUse = Dependences::kEnd, lastUse = Dependences::kNone;  // places of others that read a result
    Dependences::Window window;
    bool anchored = false;
  };

  // The program has no marks.
  Bodies(const Program& program, const Dependences& dependences, const FusePolicy& policy);

  // The body that runs at the place of this instruction; null if the instruction has gone elsewhere.
  const Body* at(int32_t place) const;
  int32_t bodyOf(int32_t instr) const { return bodyOf_[static_cast<size_t>(instr)]; }

private:
  enum class Role : uint8_t { Alone, Step, Anchor };

  Role roleOf(int32_t at) const;
  void place(int32_t at);
  // Follows from the roles: who reads values, and what steps wait for.
  void noteReaders();
  // Whether a step makes a value wider for a reader that cannot run where the value is computed: because it reduces
  // rows, or waits for something else.
  bool widensForLater(int32_t at) const;
  bool merge(int32_t a, int32_t b);
  // The steps of both in order, and whether they may run as one.
  std::vector<int32_t> joined(const Body& a, const Body& b) const;
  bool runsAsOne(const std::vector<int32_t>& steps) const;
  // What steps would have in memory as one body: a value that they alone read is nowhere.
  size_t operandCount(const std::vector<const Instr*>& steps) const;
  bool extends(const Body& anchored, const Body& other) const;
  bool readsThroughViews(const Body& body, int32_t from) const;
  bool canMoveUp(const Body& body, int32_t place, int32_t beside) const;
  void noteUse(int32_t region, int32_t place, int32_t by);

  const Instr& instr(int32_t at) const { return program_.instrs[static_cast<size_t>(at)]; }
  Body& body(int32_t id) { return bodies_[static_cast<size_t>(id)]; }
  const Body& body(int32_t id) const { return bodies_[static_cast<size_t>(id)]; }

  const Program& program_;
  const Dependences& dependences_;
  const FusePolicy& policy_;
  std::vector<Body> bodies_;     // by number; that of an instruction alone is its own
  std::vector<int32_t> bodyOf_;  // by instruction
  std::vector<Role> roles_;      // by instruction
  std::vector<int32_t> reader_;  // by region: the only instruction that reads it, if there is one
  std::vector<bool> reduced_;    // by region: whether a reduction reads it
  std::vector<int32_t> latest_;  // by instruction: the last one that is no step and that it depends on, or is
};

}  // namespace aglow
