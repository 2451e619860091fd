// What commands that run models have in common: what to run and how, the model opened, its inputs read from files.
#pragma once

#include <functional>

#include "cli/media_options.h"
#include "cli/model_options.h"
#include "dynamic/session.h"
#include "runtime/network.h"

namespace aglow::cli {

struct RunRequest {
  ModelOptions model;
  std::vector<std::string> inputs;
  int threads = 0;   // 0: one per processor
  int contexts = 0;  // the same
  std::string cache;
  MediaOptions media;
  bool pad = false;
  bool onesForOpenSizes = false;
  std::function<void(const StageEvent&)> onStage = {};  // sees every stage; nothing comes from the cache then

  std::vector<Option> options();
  Option padding();  // for commands that take inputs of several sizes
  // What the words mean for compiling.
  Result<ParsedOptions> parse() const { return parse(model); }
  Result<ParsedOptions> parse(const ModelOptions& words) const;
};

// What the words mean for running: threads, runs side by side, memory.
Result<BackendOptions> backendOptions(const RunRequest& request);

// Values of a model's inputs, by name.
using ModelValues = std::map<std::string, ModelValue>;

// A model for whatever sizes, and values for its inputs.
struct OpenedSession {
  std::unique_ptr<Session> session;
  ModelValues inputs;  // those that files were named for
  double loadSeconds = 0;
  double compileSeconds = 0;
};
Diagnosed<OpenedSession> openSession(const RunRequest& request);

// A model or text form compiled whole, for one set of sizes.
struct OpenedNetwork {
  std::unique_ptr<Network> network;  // none where --stop-after ends before
  ModelValues inputs;                // those that files were named for
  double loadSeconds = 0;            // reading and importing
  double compileSeconds = 0;
};

// `onCompiled` gets the programs before the backend takes them; a fault that it finds is the result.
Diagnosed<OpenedNetwork> openNetwork(const RunRequest& request,
                                     const std::function<Status(const Compilation&)>& onCompiled = {});

}  // namespace aglow::cli
