// What `aglow serve` takes.
#pragma once

#include <string>
#include <vector>

#include "cli/model_options.h"
#include "cli/options.h"
#include "runtime/host.h"
#include "serve/limits.h"
#include "serve/log.h"
#include "serve/service.h"

namespace aglow::serve {

struct ServeOptions {
  std::vector<std::string> models;
  std::string address = "127.0.0.1";
  int httpPort = 8000, grpcPort = 8001;
  bool noHttp = false, noGrpc = false, keepGoing = false, pad = false, json = false;
  std::string devices, cache;
  int replicas = 1, mostReplicas = 0, parts = 0, queue = 1024, hostQueue = 16384, ioThreads = 2;
  std::string criterion = "memory";
  std::vector<std::string> plans;  // MODEL=FILE.json
  int64_t batch = 1, batchDelay = 0;
  std::vector<int64_t> batchSizes;
  std::string certificate, key, tokenFile, logLevel = "info";
  int drainSeconds = 30, bodyMb = 64, tensorMb = 64, bufferedMb = 1024, connections = 4096;
  double headSeconds = 10, bodySeconds = 60, idleSeconds = 120;
  cli::ModelOptions model;  // of every model

  std::vector<cli::Option> options();
  Limits limits() const;
  Result<HostOptions> host() const;
  // What opens model files, as the options have them.
  Result<ServiceOptions> service() const;
  Result<std::string> token() const;
  LogLevel log() const;
};

}  // namespace aglow::serve
