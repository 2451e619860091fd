#include "backends/opencl/bundle.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/bundle/c_names.h"
#include "backends/cpu/code/run_time.h"
#include "backends/device/steps.h"

namespace aglow::opencl {

namespace {

using codegen::Bundle;
using codegen::BundleEntry;
using device::Loaded;
using device::MemoryPlan;
using device::Place;
using device::Step;

// Where the bundle's header says that everything lies.
MemoryPlan planOf(const BundleEntry& entry) {
  MemoryPlan plan({});
  const Program& program = entry.program;
  const auto put = [&](RegionId id, device::Use use, int64_t offset) {
    plan.add(program[id], use).offset = static_cast<uint64_t>(offset);
  };
  for (size_t i = 0; i < program.regions.size(); ++i)
    if (program.regions[i].as<ConstantInit>() != nullptr)
      put(static_cast<RegionId>(i), device::kWeights, entry.memory[static_cast<RegionId>(i)].offset);
  for (size_t i = 0; i < entry.offsets.size(); ++i) put(entry.memory.placeholders()[i], device::kIo, entry.offsets[i]);
  for (size_t i = 0; i < entry.stateOffsets.size(); ++i)
    put(entry.memory.states()[i], device::kState, entry.stateOffsets[i]);
  return plan;
}

class HostWriter {
public:
  HostWriter(const Bundle& bundle, const codegen::DeviceShape& shape, bool pairs) : bundle_(bundle), pairs_(pairs) {
    bytes_[device::kWeights] = static_cast<uint64_t>(bundle.constants.bytes());
    bytes_[device::kState] = static_cast<uint64_t>(bundle.stateBytes);
    for (const BundleEntry& entry : bundle.entries) {
      MemoryPlan& plan = plans_.emplace_back(planOf(entry));
      loaded_.push_back(makeSteps(entry.program, plan, kernels_, shape));
      bytes_[device::kArena] = std::max(bytes_[device::kArena], static_cast<uint64_t>(entry.program.arenaBytes));
      bytes_[device::kIo] = std::max(bytes_[device::kIo], static_cast<uint64_t>(entry.mutableBytes));
      bytes_[device::kFaults] = std::max(bytes_[device::kFaults], plan.bytesOf(device::kFaults));
    }
    for (uint64_t& bytes : bytes_) bytes = std::max<uint64_t>(bytes, Program::kAlignment);
  }

  BundleFiles files() {
    put("/* {}: runs on a device by OpenCL, compiled by Aglow {}. Link with -lOpenCL. */\n", bundle_.name,
        AGLOW_VERSION);
    put("#include \"{}.h\"\n", bundle_.name);
    text_ += named(bundleTypes());
    kernels();
    for (size_t i = 0; i < loaded_.size(); ++i) tables(i);
    counts();
    text_ += named(bundleHost());
    if (bundle_.stateBytes > 0) text_ += named(bundleState());
    for (size_t i = 0; i < loaded_.size(); ++i)
      put("\nint {}({}_device *device, uint8_t *mutableMem) {{ return run(device, {}, mutableMem); }}\n",
          bundle_.entries[i].name, bundle_.name, i);
    return {.host = std::move(text_), .kernels = kernels_.source(codegen::openClPrelude())};
  }

private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }

  // One row for each of a list, and one of zeros where it is empty: C has no empty arrays.
  template <class List, class Row>
  void table(const std::string& type, const std::string& name, const List& list, const Row& row) {
    put("\nstatic const {} {}[] = {{\n", type, name);
    for (const auto& item : list) text_ += "  " + row(item) + ",\n";
    if (list.empty()) text_ += type.starts_with("struct step") ? "  {0, 0, {0, 0}, {0, 0}, 0, 0},\n" : emptyOf(type);
    text_ += "};\n";
  }
  static const char* emptyOf(const std::string& type) {
    if (type == "int") return "  0,\n";
    if (type == "struct place") return "  {0, 0},\n";
    return type == "struct tensor" ? "  {0, 0, 0, 0},\n" : "  {0, 0, 0},\n";
  }

  // A string for each line: compilers bound the length of one.
  void kernels() {
    const std::string source = kernels_.source(codegen::openClPrelude());
    put("\nstatic const char *const kernel_text[] = {{\n");
    for (size_t at = 0; at < source.size();) {
      const size_t end = std::min(source.find('\n', at), source.size() - 1) + 1;
      put("  {},\n", codegen::cString(std::string_view(source).substr(at, end - at)));
      at = end;
    }
    put("}};\n");
  }

  void tables(size_t number) {
    const BundleEntry& entry = bundle_.entries[number];
    const Loaded& loaded = loaded_[number];
    std::vector<Place> places;
    table("struct step", fmt::format("steps_{}", number), loaded.steps, [&](const Step& step) {
      const size_t first = places.size();
      places.insert(places.end(), step.arguments.begin(), step.arguments.end());
      groupItems_ = std::max(groupItems_, step.group[0] * step.group[1]);
      return fmt::format("{{{}, {}, {{{}, {}}}, {{{}, {}}}, {}, {}}}", step.kernel, step.instr, step.items[0],
                         step.items[1], step.group[0], step.group[1], first, step.arguments.size());
    });
    table("struct place", fmt::format("places_{}", number), places, [&](const Place& place) {
      const device::Slot& slot = plans_[number].slots[place.slot];
      return fmt::format("{{{}, {}}}", static_cast<int>(slot.use), slot.offset + place.offset);
    });
    size_t at = 0;
    table("struct tensor", fmt::format("tensors_{}", number), entry.memory.placeholders(), [&](RegionId id) {
      const Region& region = entry.program[id];
      const Access access = region.as<PlaceholderInit>()->access;
      return fmt::format("{{{}, {}, {:d}, {:d}}}", entry.offsets[at++], region.type.bytes(), reads(access),
                         writes(access));
    });
    table("int", fmt::format("checked_{}", number), loaded.checked, [](size_t instr) { return fmt::to_string(instr); });
    steps_ += loaded.steps.size();
    faults_ = std::max(faults_, loaded.checked.size());
  }

  void counts() {
    size_t number = 0;
    table("struct entry", "entries", loaded_, [&](const Loaded& loaded) {
      const size_t i = number++;
      return fmt::format("{{steps_{0}, {1}, places_{0}, tensors_{0}, {2}, checked_{0}, {3}}}", i, loaded.steps.size(),
                         bundle_.entries[i].memory.placeholders().size(), loaded.checked.size());
    });
    table("struct initial", "initials", bundle_.states, [](const codegen::BundleState& state) {
      return fmt::format("{{{}, {}, {}}}", state.offset, state.region.type.bytes(), state.initial);
    });
    put("\nstatic const size_t buffer_bytes[BUFFERS] = {{{}}};\n", fmt::join(bytes_, ", "));
    const bool f64 = !pairs_ && std::any_of(loaded_.begin(), loaded_.end(), [&](const Loaded& loaded) {
      return !loaded.computesF64(kernels_).empty();
    });
    put("\nenum {{ STEPS = {}, FAULT_COUNT = {}, ENTRIES = {}, INITIALS = {}, GROUP_ITEMS = {}, STATUS_BITS = {},\n"
        "       NEEDS_F64 = {:d}, F64_PAIRS = {:d} }};\n",
        std::max<size_t>(steps_, 1), std::max<size_t>(faults_, 1), loaded_.size(), bundle_.states.size(), groupItems_,
        codegen::kStatusBits, f64, pairs_);
    put("#define LARGEST_BUFFER UINT64_C({})\n", *std::max_element(bytes_.begin(), bytes_.end()));
  }

  std::string named(std::string text) const {
    for (const auto& [word, name] :
         {std::pair<std::string_view, std::string>{"$name", bundle_.name}, {"$NAME", codegen::upperCase(bundle_.name)}})
      for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + name.size()))
        text.replace(at, word.size(), name);
    return text;
  }

  const Bundle& bundle_;
  bool pairs_;  // f64 are two f32 each on any device
  device::KernelTexts kernels_;
  std::vector<MemoryPlan> plans_;  // by entry
  std::vector<Loaded> loaded_;
  std::array<uint64_t, device::kUses> bytes_ = {};
  size_t steps_ = 0, faults_ = 0, groupItems_ = 1;
  std::string text_;
};

}  // namespace

BundleFiles bundleFiles(const Bundle& bundle, const codegen::DeviceShape& shape, bool pairs) {
  return HostWriter(bundle, shape, pairs).files();
}

}  // namespace aglow::opencl
