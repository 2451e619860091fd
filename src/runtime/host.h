// One host: any number of networks on any number of devices. Requests come from any thread, wait in the queue of their
// network until a replica has room, go through its parts, and are answered exactly once.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "runtime/clock.h"
#include "runtime/device_spec.h"
#include "runtime/host_statistics.h"
#include "runtime/parts.h"

namespace aglow {

class DeviceManager;

// Requests that are run as one, row by row: the first axis of every input and output counts rows.
struct BatchOptions {
  int64_t rows = 1;                   // at most, together; 1: each request by itself
  std::chrono::microseconds delay{};  // that a request may wait for others where a device is free; under load they meet
  std::vector<int64_t> sizes = {};    // prepared: rows are filled up with zeros to the next of them, and cut off again
};

struct NetworkOptions {
  std::string version = "1";
  bool makeCurrent = true;  // once it is ready, requests that name no version get this one
  int replicas = 1;         // copies, on different devices where there are enough
  int mostReplicas = 0;     // more of them while requests wait, up to so many, on devices that have none yet
  size_t queue = 1024;      // requests that may be under way or wait; one more is refused
  BatchOptions batch = {};
  std::vector<std::string> devices = {};  // where it may go, by their names; empty: anywhere
};

struct HostOptions {
  std::vector<DeviceSpec> devices;       // none: one of all cores
  size_t queue = 16384;                  // requests of all networks together
  int attempts = 3;                      // of a request whose device fails under it
  std::chrono::milliseconds probe{200};  // how often it is looked whether a failed device has come back, and at loads
  std::shared_ptr<Clock> clock = {};     // none: that of the machine
};

struct RunRequest {
  std::string network;
  std::string version = {};  // empty: the current one
  Values inputs = {};
  int priority = 0;  // more goes first
  Clock::Time deadline = Clock::Time::max();
  // A run that takes no longer than it takes to wake a thread may happen on the calling one: then the reply comes
  // before the call returns.
  bool inPlace = false;
};

using RequestId = uint64_t;

struct RunReply {
  Outputs outputs;      // or what went wrong: DeadlinePassed, Cancelled, Device, or what the run says
  std::string version;  // that ran
  Clock::Time accepted{}, started{}, ended{};  // started: its run, after the queue
  int64_t batchRows = 0;                       // of the run that it was part of
};
using ReplyCallback = std::function<void(RunReply)>;

struct NetworkInfo {
  std::string name, version;
  bool current = false;
  bool ready = false;  // some replica can run
  NetworkSpec spec;
  BatchOptions batch;
  std::vector<std::vector<std::string>> replicas;  // the devices of the parts of each
};

class HostManager {
public:
  static Result<std::unique_ptr<HostManager>> create(HostOptions options);
  // Requests that wait are cancelled; those that run are waited for.
  ~HostManager();
  HostManager(const HostManager&) = delete;
  HostManager& operator=(const HostManager&) = delete;

  // Compiles and loads, and gives back when the network is ready. Other networks and versions run on meanwhile. With
  // makeCurrent the switch is at once: every request runs on one version alone. Where not everything can be loaded,
  // nothing stays: TooLarge says what is missing where.
  Diagnosed<Unit> addNetwork(const std::string& name, std::shared_ptr<const NetworkSource> source,
                             NetworkOptions options = {});
  // Takes no more requests for it; those accepted are still answered. Without a version all of them.
  Status removeNetwork(const std::string& name, const std::string& version = {});
  // Of requests that name no version.
  Status setCurrent(const std::string& name, const std::string& version);

  // The reply comes exactly once, on a thread of the host: the callback is short and throws nothing. Refused at once,
  // and the callback never called: UnknownNetwork; Busy where too many wait, or the host drains; Device where no device
  // can run it; BadBinding where rows cannot be told.
  Result<RequestId> runNetwork(RunRequest request, ReplyCallback done);
  // The same; a refusal is the reply.
  std::future<RunReply> runNetwork(RunRequest request);
  // The reply is Cancelled, unless it was sent already: then false.
  bool cancel(RequestId request);

  // Refuses what comes from now on, and calls once all that was accepted is answered.
  void drain(std::function<void()> done = {});
  bool draining() const;

  std::vector<NetworkInfo> networks() const;
  Result<NetworkInfo> network(const std::string& name, const std::string& version = {}) const;
  HostStatistics statistics() const;
  const std::vector<std::shared_ptr<DeviceManager>>& devices() const;
  const std::shared_ptr<Clock>& clock() const;

private:
  class Impl;
  explicit HostManager(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// Devices as boxes, with the parts of networks that are on each: Figure 10 of the Glow paper.
std::string drawDot(const std::vector<NetworkInfo>& networks, const std::vector<DeviceStatistics>& devices);

}  // namespace aglow
