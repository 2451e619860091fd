// Parts of networks onto devices: chooses where each goes, compiles it once for each kind of device, and loads. Where
// one cannot be loaded, none stays.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/executor.h"

namespace aglow {

using DeviceList = std::vector<std::shared_ptr<DeviceManager>>;

// The parts of a network, each compiled once for every kind of device that it is wanted on. Safe from several threads.
class CompiledParts {
public:
  explicit CompiledParts(std::shared_ptr<const NetworkSource> source) : source_(std::move(source)) {}

  const NetworkSource& source() const { return *source_; }
  Diagnosed<std::shared_ptr<CompiledPart>> get(size_t part, const std::string& backend);

private:
  struct Slot {
    std::mutex making;
    std::shared_ptr<CompiledPart> made;
  };

  const std::shared_ptr<const NetworkSource> source_;
  std::mutex mutex_;
  std::map<std::pair<size_t, std::string>, std::shared_ptr<Slot>> slots_;
};

// What is free on a device, and how much work it has already.
struct DeviceLoad {
  int64_t freeBytes = 0;
  double microseconds = 0;  // of one run of everything on it
};

// For each replica the device of each part, by its number. Devices that another replica has are taken only where there
// is no other way. TooLarge says for each device what is missing.
Result<std::vector<std::vector<size_t>>> choosePlaces(const PartGraph& graph, int replicas, const DeviceList& devices,
                                                      std::vector<DeviceLoad> loads);

// Compiles and loads as many replicas, in parallel.
Diagnosed<std::vector<std::shared_ptr<const Replica>>> provision(CompiledParts& parts, const std::string& name,
                                                                 int replicas, const DeviceList& devices);

}  // namespace aglow
