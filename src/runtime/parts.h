// Networks as the runtime meets them: what they take and give, the parts they were cut into, and how a part gets onto a
// device. Where a network comes from (a module, a model of open sizes) is its source's own business.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "graph/model_value.h"
#include "support/diagnostics.h"

namespace aglow {

// Values by the names that a network has for them.
using Values = std::map<std::string, ModelValue>;
// In the order of the network's, or part's, outputs.
using Outputs = Diagnosed<std::vector<ModelValue>>;

// One axis of an input or output: a size, or open, with a name where the model has one for it.
struct OpenDim {
  static constexpr int64_t kOpen = -1;
  int64_t size = kOpen;
  std::string symbol = {};
};

// An input or output as the model declares it.
struct PortSpec {
  enum class Holds : uint8_t { Tensor, Strings, Other };  // Other: sequences, maps, what no tensor stands for
  std::string name;
  Holds holds = Holds::Tensor;
  ElemKind kind = ElemKind::Float32;  // of a tensor
  bool hasKind = true;                // false: the model does not say
  bool hasRank = true;
  bool hasDefault = false;  // an input that may be left out
  std::vector<OpenDim> dims = {};
  std::string text = {};  // "f32[batch,3]", for people
};

struct NetworkSpec {
  std::vector<PortSpec> inputs, outputs;
};

// Where a value comes from: an input of the network, or an output of an earlier part.
struct Wire {
  static constexpr size_t kNetwork = static_cast<size_t>(-1);
  size_t part = kNetwork;
  size_t output = 0;   // of that part
  std::string name{};  // of the network's input
};

// What a part is thought to need, for choosing a device.
struct PartCost {
  double flops = 0;
  double microseconds = 0;    // estimated, or measured where a profile was given
  int64_t constantBytes = 0;  // weights and state
  int64_t arenaBytes = 0;     // of one run: intermediate values, inputs and outputs
  int64_t bytes() const { return constantBytes + arenaBytes; }
};

struct NetworkPart {
  std::string name;
  // By the name that the part has for it. A network's input that may be left out is left out here too.
  std::map<std::string, Wire> inputs;
  std::vector<std::string> outputs;
  PartCost cost;
  std::string device = {};  // where it has to go; empty: anywhere
  bool hasState = false;    // runs change something that stays on the device
};

// A network as a graph of parts, each after those it reads from. Most have one.
struct PartGraph {
  std::vector<NetworkPart> parts;
  std::vector<Wire> outputs;  // of the network, each from a part, or an input handed through
};

// A part on one device, run by its threads.
class LoadedPart {
public:
  virtual ~LoadedPart() = default;
  virtual Outputs run(const Values& inputs) = 0;
  // What it holds now; that of open sizes grows with the sizes that come.
  virtual int64_t bytes() const = 0;
};

// A part for one kind of device, to be loaded on any number of these.
class CompiledPart {
public:
  virtual ~CompiledPart() = default;
  // TooLarge where it needs more than the options' limit.
  virtual Diagnosed<std::unique_ptr<LoadedPart>> load(const BackendOptions& options) const = 0;
};

// Something that can be put on devices: safe from several threads, and never changed.
class NetworkSource {
public:
  virtual ~NetworkSource() = default;
  virtual const NetworkSpec& spec() const = 0;
  virtual const PartGraph& graph() const = 0;
  // For devices of a backend, by its name.
  virtual Diagnosed<std::shared_ptr<CompiledPart>> compile(size_t part, const std::string& backend) const = 0;
};

}  // namespace aglow
