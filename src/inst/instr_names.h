// How tables call instructions: by their operators, and by the kernel that runs them.
#pragma once

#include <string>

#include "inst/program.h"

namespace aglow {

// The operators of a fused instruction, one after the other.
inline std::string operatorsOf(const Instr& instr) {
  std::string name;
  for (const Instr& part : instr.body) name += (name.empty() ? "" : "+") + operatorsOf(part);
  return name.empty() ? std::string(instrName(instr)) : name;
}

// Of one without a plan: "-".
inline std::string kernelOf(const Instr& instr) { return instr.plan ? instr.plan->kernel : "-"; }

// Names may hold anything; a table keeps its columns.
inline std::string shortened(const std::string& text, size_t most) {
  return text.size() <= most ? text : "…" + text.substr(text.size() - most + 1);
}

}  // namespace aglow
