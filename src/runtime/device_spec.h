// Devices in words: which there are on a host, what each may use, and how one behaves that is only simulated.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/error.h"

namespace aglow {

// An accelerator that is not there: parts run on the host, and answers come when the accelerator would have had them.
struct Simulation {
  std::chrono::nanoseconds latency{};     // of each copy, and of each start of a run
  double bytesPerSecond = 0;              // of copies, one at a time each way; 0: they take no time
  double flopsPerSecond = 0;              // 0: runs take no time
  std::vector<std::string> without = {};  // operators that it is said not to know, for partitions by support
  std::chrono::nanoseconds fails{};       // it breaks down whenever it has run for so long; 0: never
  std::chrono::nanoseconds repair{std::chrono::milliseconds(500)};  // how long it is broken then
  bool inlined = false;  // whoever sends a run does its work: with a manual clock all is in one thread
};

struct DeviceSpec {
  std::string name;        // unique on its host
  std::string backend;     // that compiles for it: cpu, interpreter, opencl:0/0
  std::vector<int> cores;  // of the machine, for the device alone; empty: any
  int64_t memory = 0;      // bytes for what is loaded; 0: those of the machine
  int lanes = 0;           // runs side by side; 0: one per core, and one on what is no processor
  size_t queue = 64;       // runs that may wait
  // A run that takes no longer may happen on the thread that asks for it: about what it takes to wake another.
  std::chrono::nanoseconds shortRun = std::chrono::microseconds(100);
  std::optional<Simulation> simulation = {};
};

// "cpu", "cpu:0-3", "cpu:0,2", "interpreter", "opencl:0/1", "sim", "sim:cpu", each with options after commas:
// "sim:cpu,name=card,memory=64M,latency=50us,copy=1G,speed=10G,without=Softmax+Conv,fails=5s,repair=1s,lanes=2,queue=16".
// Usage with what is wrong.
Result<DeviceSpec> parseDevice(std::string_view text);
// Several with spaces or semicolons between; names that are not given are made unique.
Result<std::vector<DeviceSpec>> parseDevices(std::string_view text);

}  // namespace aglow
