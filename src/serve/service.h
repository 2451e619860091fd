// What a server does, whatever protocol it speaks: models loaded from a repository onto a host, and requests run there.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/host.h"
#include "serve/inference.h"
#include "serve/repository.h"

namespace aglow::serve {

// One version of a model that is loaded.
struct ServedModel {
  std::string name, version;
  std::string network;  // the version under which the host has it: reloading makes a new one
  NetworkSpec spec;
};

// A row of the index: a version of a model, loaded or only there.
struct IndexRow {
  std::string name, version;
  bool ready = false;
  std::string reason = {};  // why it is not
};

struct ServiceOptions {
  std::vector<std::string> models;  // files and folders
  NetworkOptions network;           // of each; the version is the repository's
  // Puts a model file on the host, whole or in parts.
  std::function<Diagnosed<Unit>(HostManager& host, const std::string& name, const std::string& path,
                                const NetworkOptions& network)>
      add;
};

class Service {
public:
  using Answered = std::function<void(Result<InferAnswer>)>;
  using Done = std::function<void(Status)>;

  Service(HostManager& host, Repository repository, ServiceOptions options);
  // Loads that wait are not done any more.
  ~Service();

  // Loads every model of the repository, in the background as all loads, one after the other. `each` hears of every
  // model, `done` at the end; those that cannot be loaded are in the index with the reason.
  void loadAll(std::function<void(const std::string& name, const Status& loaded)> each, std::function<void()> done);
  // One model, again or for the first time. One that is loaded is replaced once the new one is ready, and stays where
  // that fails.
  void load(const std::string& name, Done done);
  void unload(const std::string& name, Done done);
  std::vector<IndexRow> index() const;

  // Called exactly once, maybe before this returns. Gives what cancel() takes, 0 where nothing is under way.
  RequestId infer(InferRequest request, Answered answered);
  void cancel(RequestId request) { host_.cancel(request); }

  // UnknownNetwork, or the model; without a version the current one.
  Result<std::shared_ptr<const ServedModel>> find(const std::string& name, const std::string& version = {}) const;
  std::vector<std::string> versionsOf(const std::string& name) const;
  bool modelReady(const std::string& name, const std::string& version) const;
  // All models are loaded and can run, and the server is not about to end.
  bool ready() const;
  // From now on it is not ready; requests are still run.
  void end() { ending_ = true; }
  // The host's, with models under their versions of the repository: each once, also while one replaces another.
  HostStatistics statistics() const;
  // No load is under way or waits.
  bool idle() const { return pending_ == 0; }
  HostManager& host() const { return host_; }

private:
  struct Versions {
    std::map<std::string, std::shared_ptr<const ServedModel>> loaded;
    std::string current;
    std::string fault;  // why loading it failed, the last time
  };

  void loaderLoop();
  void later(std::function<void()> work);
  Status loadNow(const std::string& name);
  Status unloadNow(const std::string& name);
  Status loadVersion(const std::string& name, const std::string& version, const std::string& file);
  Error unknown(const std::string& name, const std::string& version) const;

  HostManager& host_;
  const Repository repository_;
  const ServiceOptions options_;
  uint64_t loads_ = 0;  // of the loader alone

  mutable std::shared_mutex mutex_;
  std::map<std::string, Versions> models_;

  std::mutex workMutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::atomic<size_t> pending_ = 0;  // of the work, that under way included
  bool ends_ = false;
  std::atomic<bool> loaded_ = false;  // all of the repository, once
  std::atomic<bool> ending_ = false;
  std::thread loader_;  // after what it uses
};

}  // namespace aglow::serve
