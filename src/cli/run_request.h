// What commands that run models have in common: what to run and how, the model opened, its inputs read from files.
#pragma once

#include <functional>

#include "cli/model_options.h"
#include "dynamic/session.h"

namespace aglow::cli {

struct RunRequest {
  ModelOptions model;
  std::vector<std::string> inputs;
  int threads = 0;  // 0: one per processor
  std::string cache;
  bool pad = false;

  void add(CLI::App& command);
};

// What the words mean for running: threads, memory, cache.
Result<BackendOptions> backendOptions(const RunRequest& request);

// A model for whatever sizes, and values for its inputs.
struct OpenedSession {
  std::unique_ptr<Session> session;
  std::map<std::string, ModelValue> inputs;  // those that files were named for
  double loadSeconds = 0;
  double compileSeconds = 0;
};
Diagnosed<OpenedSession> openSession(const RunRequest& request);

// A model or text form compiled whole, for one set of sizes.
struct OpenedProgram {
  std::vector<Interface> interfaces;       // of its functions
  std::unique_ptr<Executable> executable;  // none where --stop-after ends before
  std::map<std::string, Tensor> given;     // values by placeholder, of the inputs that files were named for
  double loadSeconds = 0;                  // reading and importing
  double compileSeconds = 0;
};

// With `needAll` every input of the model has to be given. `seen` gets the programs before the backend takes them; a
// fault that it finds is the result.
Diagnosed<OpenedProgram> openProgram(const RunRequest& request, bool needAll,
                                     const std::function<Status(const Compilation&)>& seen = {});

}  // namespace aglow::cli
