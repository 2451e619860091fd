// What `run` and `bench` have in common: a model compiled and loaded, and its inputs read from files.
#pragma once

#include <functional>

#include "cli/model_options.h"

namespace aglow::cli {

struct SessionOptions {
  ModelOptions model;
  std::vector<std::string> inputs;
  int threads = 0;  // 0: one per processor
  std::string cache;

  void add(CLI::App& command);
};

struct Session {
  Interface interface;
  std::unique_ptr<Executable> executable;  // none where --stop-after ends before
  std::map<std::string, Tensor> given;     // values by placeholder, of the inputs that files were named for
  double loadSeconds = 0;                  // reading and importing
  double compileSeconds = 0;
};

// With `needAll` every input of the model has to be given. `seen` gets the program before the backend takes it.
Diagnosed<Session> openSession(const SessionOptions& options, bool needAll,
                               const std::function<void(const Program&)>& seen = {});

}  // namespace aglow::cli
