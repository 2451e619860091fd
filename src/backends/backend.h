// What every backend offers: which operators it wants whole, and executables made from programs.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/node.h"
#include "inst/program.h"
#include "support/decision.h"

namespace aglow {

struct Binding {
  std::string name;
  Type type;
};

// A compiled program with its memory. One run at a time.
class Executable {
public:
  virtual ~Executable() = default;

  // The program's placeholders, in order.
  virtual std::span<const Binding> inputs() const = 0;
  virtual std::span<const Binding> outputs() const = 0;

  // One tensor per input, in order, of its type; one tensor per output comes back.
  virtual Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) = 0;
};

struct BackendOptions {
  int64_t memoryLimit = 0;  // bytes of arena, constants, inputs and outputs together; 0: none
};

class Backend {
public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;
  // Whether instructions of this node's operator can be compiled. For a composite, yes keeps it from being lowered.
  virtual Decision supports(const Node& node) const = 0;
  // The program is placed.
  virtual Result<std::unique_ptr<Executable>> compile(Program program, const BackendOptions& options) const = 0;
};

// The tensors in the order of the bindings. A missing name is a MissingBinding error; an unknown one, or another type,
// is BadBinding.
Result<std::vector<Tensor>> bindByName(std::span<const Binding> bindings, const std::map<std::string, Tensor>& named);
// Checks number and types of tensors that are in order already.
Status checkBound(std::span<const Binding> bindings, std::span<const Tensor> tensors);

// Placeholders as bindings.
std::vector<Binding> bindingsOf(const Program& program, std::span<const RegionId> placeholders);
// TooLarge when the program's arena and declared regions need more than the limit allows.
Status checkMemory(const Program& program, const BackendOptions& options);

}  // namespace aglow
