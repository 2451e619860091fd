// Cuts a function into parts for several devices. Parts are numbered so that values only go from lower to higher ones:
// together they are never a circle, however they are cut.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compile/compile.h"
#include "runtime/device_spec.h"
#include "runtime/parts.h"

namespace aglow {

enum class PartitionCriterion : uint8_t {
  Memory,         // the largest part is as small as can be
  Time,           // one request takes the least time
  Communication,  // the fewest bytes go from device to device
  Pipeline,       // the slowest part is as fast as can be: most requests per second
  Support,        // what a device does not know goes to the last one
};
// By its name in lower case; Usage with the names there are.
Result<PartitionCriterion> criterionOf(std::string_view name);
std::string_view criterionName(PartitionCriterion criterion);

// A device as far as it matters for cutting.
struct PartitionDevice {
  std::string name;
  std::string backend;
  int64_t memory = 0;           // 0: any
  double flopsPerSecond = 0;    // 0: as fast as estimates say
  double bytesPerSecond = 8e9;  // to and from others
  double latencyMicroseconds = 10;
  std::vector<std::string> without = {};  // operators that it is said not to know
};
PartitionDevice partitionDeviceOf(const DeviceSpec& spec);

struct PartitionRequest {
  PartitionCriterion criterion = PartitionCriterion::Memory;
  size_t parts = 0;                             // 0: as few as fit; with devices at most as many as there are
  std::vector<PartitionDevice> devices;         // of the parts, in order; none: all are alike, with any memory
  std::map<std::string, std::string> byHand;    // nodes to devices; what is not named goes with what it reads
  std::map<std::string, double> measured = {};  // microseconds by node
  bool portable = false;                        // parts can be compiled for any backend
};

// A function of a module, cut: the module has a function for each part, with placeholders between.
struct Partition {
  std::shared_ptr<const Module> module;
  PartGraph graph;
  struct Facts {
    std::string function;  // of the module
    std::string device;
    size_t nodes = 0;
    double microseconds = 0;
    int64_t inBytes = 0, outBytes = 0;  // from and to other parts
  };
  std::vector<Facts> facts;            // by part
  std::vector<std::string> calledOut;  // nodes that had to go elsewhere, with the reason
  std::string phase;                   // after which it was cut
  // Which nodes run as one in the whole, and so in the parts; none where the parts decide that themselves.
  std::shared_ptr<const FusedNodes> fusedNodes;
};

// The phase up to which a function is compiled before it is cut. Where all devices are alike it is the last one on the
// graph, and every part computes what it computes in the whole, to the bit. Devices of several kinds share no more than
// the graph that all rules have seen, from which each goes on in its own way.
std::string_view partitionPhase(const PartitionRequest& request);

// Of what was compiled up to that phase with these options. TooLarge where it does not fit, with what is missing;
// UnsupportedFeature for what takes or gives anything but tensors.
Result<Partition> partition(const Compilation& compilation, const PartitionRequest& request,
                            const CompileOptions& options);

// A partition as a network for a host. Parts for the options' backend go on from the phase where it was cut.
std::shared_ptr<const NetworkSource> sourceOf(Partition partition, const Interface& interface, CompileOptions options);

// The parts as boxes, with the values between them: the partitioned graph of Figure 9.
std::string drawDot(const Partition& partition);

}  // namespace aglow
