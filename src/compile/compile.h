// The driver: takes a model through the phases of the pipeline (phases.cpp is the map), tells an observer what happens,
// and gives what the last phase made.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "codegen/target_options.h"
#include "graph/interface.h"
#include "graph/module.h"
#include "import/onnx/importer.h"
#include "inst/program.h"
#include "support/diagnostics.h"

namespace aglow {

// After each pass, and (with an empty pass) after each phase. Exactly one of graph and program is there.
struct StageEvent {
  std::string_view phase;
  std::string_view pass;
  bool changed = false;
  double seconds = 0;
  const Module* graph = nullptr;
  const Program* program = nullptr;
};

struct CompileOptions {
  std::string backend = "interpreter";
  codegen::TargetOptions target;                       // of backends that generate code
  std::map<std::string, std::vector<int64_t>> shapes;  // --shape
  std::map<std::string, int64_t> dims;                 // --dim
  std::map<std::string, ModelValue> given;             // inputs known when compiling
  std::set<std::string, std::less<>> disabled;         // passes and rules by name
  int64_t lanes = 0;                                   // of the layout phase; 0: as the backend says
  std::string startFrom;                               // phase; for text forms
  std::string stopAfter;                               // phase or pass
  bool stack = false;                                  // also where the backend does not ask for it
  bool verifyEach = false;  // after every pass, not only every phase; and parse(print(x)) == x
  std::function<Status(const StageEvent&)> observer;
  onnx::Tolerance tolerance = {};
};

struct PassTiming {
  std::string phase, pass;
  int runs = 0;
  int changes = 0;
  double seconds = 0;
};

// What the last phase left. The graph is there until instructions take its place.
struct Compilation {
  std::unique_ptr<Module> module;
  Function* function = nullptr;
  Interface interface;
  std::optional<Program> program;
  std::vector<PassTiming> timings;
  std::map<std::string, int64_t, std::less<>> ruleCounts;
  std::shared_ptr<const Backend> backend;
};

// A model file (ONNX, or a text form by its ending .graph or .ir) through all phases, or as far as the options say.
Diagnosed<Compilation> compileFile(const std::string& path, const CompileOptions& options);
Diagnosed<Compilation> compileModel(const onnx::Model& model, const CompileOptions& options);
Diagnosed<Compilation> compileImported(onnx::ImportedModel imported, const CompileOptions& options);
Diagnosed<Compilation> compileModule(std::unique_ptr<Module> module, const CompileOptions& options);

// The backend that the options name; Usage error with the names there are.
Result<std::shared_ptr<const Backend>> makeBackend(const CompileOptions& options);
std::vector<std::string_view> backendNames();

// A program ready to be run.
Result<std::unique_ptr<Executable>> load(Compilation compilation, const BackendOptions& options = {});

// Compiles a graph, runs it once, and gives its outputs by name: the short way for programs that build their own.
Result<std::map<std::string, Tensor>> runModule(std::unique_ptr<Module> module,
                                                const std::map<std::string, Tensor>& inputs,
                                                const CompileOptions& options = {});

}  // namespace aglow
