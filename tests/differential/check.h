// Whether all engines agree on a case, and the smallest part of a case on which they do not.
#pragma once

#include <string>

#include "engines.h"

namespace aglow::differential {

struct Verdict {
  enum class Kind : uint8_t { Agree, Differ, Fails, Relaxed };
  Kind kind = Kind::Agree;
  std::string engine, what;  // who differs, and how
};

// Fails: the reference meets a run-time error, and engines meet the same or were free to leave the culprit out.
// Relaxed: they differ in infinities or NaN, and agree once the rules that say so in their documentation are off.
Verdict check(const Case& c, const std::vector<Engine>& engines);

// Drops outputs and nodes, and cuts the graph with the reference's values, as long as the engine still differs.
Case shrunk(Case c, const Engine& engine);

}  // namespace aglow::differential
