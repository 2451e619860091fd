// A graph with values for its inputs: what the differential fuzzer draws, compares, shrinks and keeps.
#pragma once

#include <memory>
#include <string>

#include "compile/evaluate.h"
#include "graph/module.h"

namespace aglow::differential {

struct Case {
  std::unique_ptr<Module> module;  // one function
  NamedTensors inputs;

  Function& function() const { return *module->functions().front(); }
};

struct DrawOptions {
  int nodes = 6;              // at most
  int64_t maxElements = 600;  // of every operand and result
  bool standard = false;      // float32, float64, int32, int64 and bool alone, and no odd values: for other engines
};

// The same seed gives the same case on every machine.
Case drawCase(uint64_t seed, const DrawOptions& options);

Case cloned(const Case& from);

// A case as one text file: the values of inputs are constants that no node uses, named after their input.
Status writeCase(const std::string& path, const Case& from);
Result<Case> readCase(const std::string& path);

// Erases nodes whose results nobody needs, and storage without a use.
void dropDeadNodes(Case& of);

}  // namespace aglow::differential
