// The driver: takes all functions of a module through the phases of the pipeline (phases.cpp is the map), tells an
// observer what happens, and gives what the last phase made.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/code/target_options.h"
#include "backends/device/tune_options.h"
#include "graph/interface.h"
#include "graph/module.h"
#include "inst/program.h"
#include "support/diagnostics.h"

namespace aglow {

namespace quant {
struct Request;
}
struct FusedNodes;

// After each pass over a function, and (with an empty pass) after each phase. Either the graph is there, or programs.
struct StageEvent {
  std::string_view phase;
  std::string_view pass;
  std::string_view function;  // of a pass
  bool changed = false;
  double seconds = 0;
  const Module* graph = nullptr;
  std::span<const Program> programs = {};
};

struct CompileOptions {
  std::string backend;                          // empty: the default one
  std::vector<std::string> functions;           // of a text form: only these; empty: all
  codegen::TargetOptions target;                // of backends that generate code
  std::set<std::string, std::less<>> disabled;  // passes and rules by name
  int64_t lanes = 0;                            // of the layout phase; 0: as the backend says
  std::string cache;                            // folder where compiled models are kept; none: nowhere
  std::string startFrom;                        // phase; for text forms
  std::string stopAfter;                        // phase or pass
  int64_t recompute = 0;                        // bytes that a function's arena may have; 0: any
  bool fuse = false;                            // also where the backend does not ask for it
  bool verifyEach = false;                      // after every pass, not only every phase; and parse(print(x)) == x
  device::TuneOptions tune;                     // whether kernels of devices are chosen by measurement
  bool f64Pairs = false;                        // f64 as two f32 each, on devices
  std::function<Status(const StageEvent&)> observer;
  // What becomes integers, and how; none: the model stays as it is.
  std::shared_ptr<const quant::Request> quantize = {};
  // Which nodes run as one, where that was decided before (fuse/fuse.h); none: as the backend wants.
  std::shared_ptr<const FusedNodes> fusedNodes = {};
};

struct PassTiming {
  std::string phase, pass;
  int runs = 0;
  int changes = 0;
  double seconds = 0;
};

// What the last phase left: a module for one backend. The graph is there until programs take its place, one for each
// function over the same storage: declared regions of one name are the same in all of them.
struct Compilation {
  std::unique_ptr<Module> module;
  std::vector<Program> programs;      // in the order of the functions
  std::vector<Interface> interfaces;  // of the functions, in their order
  std::vector<PassTiming> timings;
  std::map<std::string, int64_t, std::less<>> ruleCounts;
  std::shared_ptr<const Backend> backend;
  std::string cache, cacheKey;  // where it is kept once it is loaded; none: nowhere

  bool placed() const;
  std::vector<std::string> functionNames() const;
};

// All functions of a module through all phases, or as far as the options say. They take and give their placeholders.
Diagnosed<Compilation> compileModule(std::unique_ptr<Module> module, const CompileOptions& options);
// The same for functions that were imported, with what each takes and gives.
Diagnosed<Compilation> compileModule(std::unique_ptr<Module> module, std::vector<Interface> interfaces,
                                     const CompileOptions& options);
// A text form, by its ending: .graph, or .ir; or a package: .aglow.
Diagnosed<Compilation> compileTextFile(const std::string& path, const CompileOptions& options);

// The backend that the options name; Usage error with the names there are.
Result<std::shared_ptr<const Backend>> makeBackend(const CompileOptions& options);
std::vector<std::string_view> backendNames();
// Whether a backend has this name, which may go on with a device: opencl:0/1.
bool isBackend(std::string_view name);
// Whether it goes on with a bound of the device's memory: opencl@64M.
bool boundsMemory(std::string_view name);
// The one that is taken where nobody names one: the fastest that this build has.
std::string_view defaultBackend();
// The one that others are compared with; every build has it.
inline constexpr std::string_view kReferenceBackend = "interpreter";

// The programs ready to be run.
Result<std::unique_ptr<Executable>> load(Compilation compilation, const BackendOptions& options = {});

}  // namespace aglow
