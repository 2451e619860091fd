// One device of a host: loads parts and lets them go, runs them, and keeps account of memory, time and health. Whoever
// sends a run is called back; nobody waits.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "runtime/clock.h"
#include "runtime/device_spec.h"
#include "runtime/parts.h"

namespace aglow {

class DeviceManager;

// A part that is on a device for as long as this lives.
class Resident {
public:
  ~Resident();
  Resident(const Resident&) = delete;
  Resident& operator=(const Resident&) = delete;

  DeviceManager& device() const { return *device_; }
  LoadedPart& part() const { return *part_; }
  int64_t bytes() const { return std::max(part_ ? part_->bytes() : 0, cost_.bytes()); }

private:
  friend class DeviceManager;
  Resident(std::shared_ptr<DeviceManager> device, PartCost cost) : device_(std::move(device)), cost_(cost) {}

  std::shared_ptr<DeviceManager> device_;
  PartCost cost_;
  std::unique_ptr<LoadedPart> part_;
  Clock::Duration typical_ = Clock::Duration::max();  // time of a run lately; the device's lock is for it
};

struct DeviceStatistics {
  std::string name, backend;
  bool healthy = true;
  std::string fault;  // why it is out
  int64_t memoryLimit = 0, memoryUsed = 0;
  size_t parts = 0, waiting = 0, running = 0;
  uint64_t runs = 0, failedRuns = 0, failures = 0;
  double busySeconds = 0;  // of all lanes together
  double utilisation = 0;  // since it was made: part of the time of all lanes
};

class DeviceManager : public std::enable_shared_from_this<DeviceManager> {
public:
  // A run of a part.
  struct Job {
    std::shared_ptr<Resident> resident;
    Values inputs;
    double flops = 0;  // for what is simulated
    int priority = 0;  // more goes first
    // A short run may happen on the thread that brings it, where the device has nothing else to do.
    bool inPlace = false;
    std::function<void(Outputs)> done;
  };

  // UnsupportedFeature where its backend is not there.
  static Result<std::shared_ptr<DeviceManager>> create(DeviceSpec spec, std::shared_ptr<Clock> clock);
  ~DeviceManager();
  // Ends its threads, once nothing is left to run. Never from one of them.
  void stop();

  const DeviceSpec& spec() const { return spec_; }
  const std::string& name() const { return spec_.name; }
  int lanes() const { return lanes_; }
  int64_t memoryLimit() const { return limit_; }
  int64_t memoryFree() const;
  bool healthy() const;

  // The time of one run of everything that is loaded, as estimated.
  double plannedMicroseconds() const;

  // Loads a part that is thought to cost as much. TooLarge where there is no room, with what is missing; Device
  // where the device has failed.
  Diagnosed<std::shared_ptr<Resident>> load(const CompiledPart& part, const std::string& name, const PartCost& cost);

  // Takes a run on, unless as many wait as may: then false, and the job is the caller's still. A failed device takes it
  // and calls back with the fault. `room` below is called when there is room again.
  bool offer(Job& job);
  // The same for a run that something else already depends on: always taken.
  void push(Job job);
  // To be called, from any thread, when a run has ended; set once, before anything runs.
  void onRoom(std::function<void()> room) { room_ = std::move(room); }
  // To be called when the device fails.
  void onFailure(std::function<void()> failed) { failed_ = std::move(failed); }

  // Takes it out: what runs or waits ends with the fault, and what was loaded is lost.
  void fail(const std::string& fault);
  // A device that is asked to fail stays so until it is repaired.
  void breakDown(const std::string& fault);
  void repair();
  // Tries to bring a failed device back; false where it is still broken.
  bool recover();

  DeviceStatistics statistics() const;

private:
  struct Queued;
  struct Flight;  // a simulated run whose answer is still to come
  struct Lane;
  struct Queue;

  DeviceManager(DeviceSpec spec, std::shared_ptr<Clock> clock);
  friend class Resident;

  void enqueue(Job job);
  bool runsInPlace(const Job& job) const;
  void laneLoop(Lane& own);
  void execute(Queued job);
  void finish(const Job& job, Outputs outputs);
  void simulate(Queued job, Outputs outputs);
  void failLater();
  Error fault() const;

  const DeviceSpec spec_;
  const std::shared_ptr<Clock> clock_;
  int64_t limit_ = 0;
  int lanes_ = 1;
  std::shared_ptr<ThreadPool> pool_;
  std::shared_ptr<TensorPool> weights_;
  std::function<void()> room_, failed_;
  Clock::Time made_;

  mutable std::mutex mutex_;  // of what follows
  std::set<Resident*> residents_;
  std::unique_ptr<Queue> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace aglow
