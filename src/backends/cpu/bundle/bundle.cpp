// Placing a model's inputs and outputs in the caller's memory.
#include "backends/cpu/bundle/bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backends/cpu/bundle/c_names.h"
#include "inst/text.h"
#include "support/quote.h"

namespace aglow::codegen {

namespace {

// Declared regions have no memory of their own in a bundle: constants are shared, and the rest is the caller's.
Status checkOnlyPlaceholdersWritten(const Program& program) {
  const std::vector<Extent> extents = program.extents();
  for (const Instr& instr : program.instrs) {
    for (const Operand& operand : instr.operands) {
      if (operand.region == kNoRegion || !writes(operand.access) || instr.isMarker()) continue;
      const Region& root = program[extents[static_cast<size_t>(operand.region)].root];
      if (root.as<SplatInit>() != nullptr || root.as<XavierInit>() != nullptr)
        return Error{
            .code = Code::UnsupportedFeature,
            .message = fmt::format("variable {} changes, but a bundle's code keeps no state", quoted(root.name)),
            .where = {},
            .hint = "make it an input and an output of the model"};
    }
  }
  return {};
}

class Placer {
public:
  explicit Placer(BundleEntry& entry) : entry_(entry) {
    macros_.insert(std::begin(kBundleMacros), std::end(kBundleMacros));
    macros_.insert(std::begin(kEntryMacros), std::end(kEntryMacros));
    for (const BundleStatus& status : kBundleStatuses) macros_.insert(status.name);
  }

  void run(const Interface& interface) {
    for (const Port& port : interface.inputs) add(port, port.name, entry_.inputs);
    for (const Port& port : interface.outputs) add(port, port.name, entry_.outputs);
    // What the interface does not name is still read or written.
    for (const RegionId id : entry_.memory.placeholders()) {
      const Region& region = entry_.program[id];
      const Port port{.kind = Port::Kind::Tensor, .name = region.name, .placeholder = region.name, .type = region.type};
      if (known_.contains(region.name)) continue;
      add(port, port.name, reads(region.as<PlaceholderInit>()->access) ? entry_.inputs : entry_.outputs);
    }
    for (const RegionId id : entry_.memory.placeholders())
      entry_.offsets.push_back(known_.at(entry_.program[id].name).offset);
    entry_.mutableBytes = std::max(entry_.mutableBytes, Program::kAlignment);
  }

private:
  void add(const Port& port, const std::string& name, std::vector<BundleTensor>& to) {
    for (size_t i = 0; i < port.items.size(); ++i) add(port.items[i], fmt::format("{}[{}]", name, i), to);
    if (port.kind == Port::Kind::Frozen) entry_.unused.push_back(name);
    if (port.kind != Port::Kind::Tensor) return;
    const auto placeholder = std::find_if(entry_.memory.placeholders().begin(), entry_.memory.placeholders().end(),
                                          [&](RegionId id) { return entry_.program[id].name == port.placeholder; });
    if (placeholder == entry_.memory.placeholders().end()) {
      entry_.unused.push_back(name);
      return;
    }
    const auto it = known_.find(port.placeholder);
    if (it != known_.end()) {
      to.push_back(it->second);
      to.back().name = name;
      return;
    }
    const Region& region = entry_.program[*placeholder];
    BundleTensor tensor{.name = name,
                        .symbol = uniqueName(upperCase(cIdentifier(name)), macros_, kTensorMacros),
                        .type = region.type,
                        .access = region.as<PlaceholderInit>()->access,
                        .offset = entry_.mutableBytes,
                        .labels = port.labels};
    entry_.mutableBytes += aligned(region.type.bytes());
    known_[port.placeholder] = tensor;
    to.push_back(std::move(tensor));
  }

  BundleEntry& entry_;
  std::map<std::string, BundleTensor> known_;
  std::set<std::string> macros_;  // of the header, after the entry's name
};

}  // namespace

int64_t BundleEntry::activationBytes() const { return std::max(memory.activationBytes(), Program::kAlignment); }

Status Bundle::add(const std::string& entry, Program program, const Interface& interface) {
  AGLOW_OK(checkOnlyPlaceholdersWritten(program));
  MemoryMap memory(program, constants);
  entries.push_back({.name = entry, .program = std::move(program), .memory = std::move(memory)});
  Placer(entries.back()).run(interface);
  Listing& listing = entries.back().listing;
  listing.file = entry + ".ir";
  listing.text = print(entries.back().program, nullptr, &listing.lines);
  return {};
}

}  // namespace aglow::codegen
