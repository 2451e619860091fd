// The ways to run a case that have to agree.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "case.h"
#include "compile/compile.h"

namespace aglow::differential {

struct Engine {
  std::string name;
  CompileOptions options;
  int threads = 1;
  bool exported = false;  // as an ONNX model that is read again
  bool nests = false;     // the interpreter with InterpreterOptions::nests
};

// The interpreter, and the CPU without and with LLVM's optimizer; the seed chooses processors, lanes, threads and
// switched-off passes besides.
std::vector<Engine> enginesFor(uint64_t seed);
// The interpreter, and the OpenCL device that is chosen where none is named.
std::vector<Engine> deviceEngines();
// Every way at once, for few cases.
std::vector<Engine> allEngines();

// Rules that give up on infinities and NaN, as their documentation says.
Engine withoutRelaxedRules(Engine engine);

// Outputs by name. Internal faults are errors as well.
Result<std::map<std::string, Tensor>> run(const Case& c, const Engine& engine);

}  // namespace aglow::differential
