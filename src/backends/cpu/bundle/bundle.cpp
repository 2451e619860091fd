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

class Placer {
public:
  explicit Placer(BundleEntry& entry) : entry_(entry) {
    macros_.insert(std::begin(kBundleMacros), std::end(kBundleMacros));
    macros_.insert(std::begin(kEntryMacros), std::end(kEntryMacros));
    for (const BundleStatus& status : kBundleStatuses) macros_.insert(status.name);
    for (const BundleStatus& status : kDeviceStatuses) macros_.insert(status.name);
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

Result<int64_t> Bundle::placeState(const Region& region) {
  const auto known =
      std::find_if(states.begin(), states.end(), [&](const BundleState& s) { return s.region.name == region.name; });
  if (known != states.end()) {
    if (sameStorage(known->region, region)) return known->offset;
    return Error{.code = Code::UnsupportedFeature,
                 .message = fmt::format("state {} is {} for one entry and {} for another", quoted(region.name),
                                        known->region.type.text(), region.type.text()),
                 .where = {},
                 .hint = "write a bundle for each size"};
  }
  std::set<std::string> taken = {"BYTES"};
  for (const BundleState& state : states)
    for (const std::string_view ending : kTensorMacros) taken.insert(state.symbol + std::string(ending));
  const Tensor initial = initialValue(region);
  const bool zeros = std::all_of(initial.data(), initial.data() + initial.bytes(),
                                 [](std::byte value) { return value == std::byte{0}; });
  states.push_back({.symbol = uniqueName(upperCase(cIdentifier(region.name)), taken, kTensorMacros),
                    .region = region,
                    .offset = stateBytes,
                    .initial = zeros ? BundleState::kZeros : constants.place(initial)});
  stateBytes += std::max(aligned(region.type.bytes()), Program::kAlignment);
  return states.back().offset;
}

std::vector<std::string> bundleFunctionNames(const std::string& bundle, const std::vector<std::string>& functions) {
  if (functions.size() == 1) return {bundle};
  // Macros are upper case, so names may not differ in case alone.
  std::set<std::string> taken = {"CHECK", "INFO", "WEIGHTS", "STATE", "STATE_INIT", "STATE_READ",  "STATE_WRITE",
                                 "STEP",  "OPEN", "CLOSE",   "WORDS", "DEVICE",     "PARALLEL_FOR"};
  std::vector<std::string> names;
  for (const std::string& function : functions) {
    const std::string wanted = cIdentifier(function);
    std::string name = wanted;
    const auto isTaken = [&] {
      return taken.contains(upperCase(name)) || taken.contains(upperCase(name + "_parallel")) ||
             !isFreeName(fmt::format("{}_{}", bundle, name));
    };
    for (int i = 2; isTaken(); ++i) name = fmt::format("{}_{}", wanted, i);
    taken.insert({upperCase(name), upperCase(name + "_parallel")});
    names.push_back(bundle + "_" + name);
  }
  return names;
}

Status Bundle::add(const std::string& entry, Program program, const Interface& interface) {
  MemoryMap memory(program, constants);
  std::vector<int64_t> stateOffsets;
  for (const RegionId id : memory.states()) {
    AGLOW_TRY(const int64_t offset, placeState(program[id]));
    stateOffsets.push_back(offset);
  }
  entries.push_back({.name = entry, .program = std::move(program), .memory = std::move(memory)});
  entries.back().stateOffsets = std::move(stateOffsets);
  Placer(entries.back()).run(interface);
  Listing& listing = entries.back().listing;
  listing.file = entry + ".ir";
  listing.text = print(entries.back().program, nullptr, &listing.lines);
  return {};
}

void Bundle::seal() {
  layout = layoutOf(*this);
  constants.seal(layout);
}

}  // namespace aglow::codegen
