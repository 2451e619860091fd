#include "backends/device/bundle_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "backends/cpu/code/run_time.h"

namespace aglow::device {

using codegen::BundleEntry;

namespace {

// Where the bundle's header says that everything lies.
MemoryPlan planOf(const BundleEntry& entry) {
  MemoryPlan plan({});
  const Program& program = entry.program;
  const auto put = [&](RegionId id, Use use, int64_t offset) {
    plan.add(program[id], use).offset = static_cast<uint64_t>(offset);
  };
  for (size_t i = 0; i < program.regions.size(); ++i)
    if (program.regions[i].as<ConstantInit>() != nullptr)
      put(static_cast<RegionId>(i), kWeights, entry.memory[static_cast<RegionId>(i)].offset);
  for (size_t i = 0; i < entry.offsets.size(); ++i) put(entry.memory.placeholders()[i], kIo, entry.offsets[i]);
  for (size_t i = 0; i < entry.stateOffsets.size(); ++i) put(entry.memory.states()[i], kState, entry.stateOffsets[i]);
  return plan;
}

}  // namespace

BundleTables::BundleTables(const codegen::Bundle& bundle, const codegen::DeviceShape& shape, bool pairs)
    : bundle_(bundle), pairs_(pairs) {
  bytes_[kWeights] = static_cast<uint64_t>(bundle.constants.bytes());
  bytes_[kState] = static_cast<uint64_t>(bundle.stateBytes);
  for (const BundleEntry& entry : bundle.entries) {
    MemoryPlan& plan = plans_.emplace_back(planOf(entry));
    loaded_.push_back(makeSteps(entry.program, plan, kernels_, shape));
    bytes_[kArena] = std::max(bytes_[kArena], static_cast<uint64_t>(entry.program.arenaBytes));
    bytes_[kIo] = std::max(bytes_[kIo], static_cast<uint64_t>(entry.mutableBytes));
    bytes_[kFaults] = std::max(bytes_[kFaults], plan.bytesOf(kFaults));
  }
  for (uint64_t& bytes : bytes_) bytes = std::max<uint64_t>(bytes, Program::kAlignment);
}

Status BundleTables::fit(const Limits& limits) const {
  static constexpr const char* kNames[] = {"intermediate results", "weights", "state", "inputs and outputs",
                                           "faults of kernels"};
  const auto refused = [&](const std::string& why) {
    return Error{.code = Code::TooLarge,
                 .message = fmt::format("the device {} has no room for all of '{}', whose buffers lie there whole: {}",
                                        limits.device, bundle_.name, why)};
  };
  for (size_t use = 0; use < bytes_.size(); ++use)
    if (bytes_[use] > limits.bufferBytes)
      return refused(fmt::format("{} bytes are needed for {} in one buffer, which has at most {}", bytes_[use],
                                 kNames[use], limits.bufferBytes));
  const uint64_t all = std::accumulate(bytes_.begin(), bytes_.end(), uint64_t{0});
  if (all <= limits.allBytes) return {};
  return refused(fmt::format("{} bytes are needed, and it has {}", all, limits.allBytes));
}

const char* BundleTables::types() {
  return R"(
enum { AGLOW_ARENA, AGLOW_WEIGHTS, AGLOW_STATE, AGLOW_IO, AGLOW_FAULTS, AGLOW_BUFFERS };

/* An argument of a kernel: where in which buffer. */
struct place {
  int buffer;
  uint64_t offset;
};
struct step {
  int kernel, instruction;
  size_t items[2], group[2];
  int first, count; /* of its places */
};
struct tensor {
  size_t offset, bytes;
  int reads, writes;
};
/* What a kernel notes of an index that lies outside of its axis. */
struct fault {
  int32_t seen, unused;
  int64_t index;
};
struct entry {
  const struct step *steps;
  int step_count;
  const struct place *places;
  const struct tensor *tensors;
  int tensor_count;
  const int *checked; /* instructions, by the number of their fault */
  int checked_count;
};
struct initial {
  size_t offset, bytes;
  int64_t from; /* in the constants; -1: zeros */
};
)";
}

std::string BundleTables::text() {
  for (size_t i = 0; i < loaded_.size(); ++i) ofEntry(i);
  ofAll();
  return std::move(text_);
}

template <class... Args>
void BundleTables::put(fmt::format_string<Args...> format, Args&&... args) {
  text_ += fmt::format(format, std::forward<Args>(args)...);
}

// One row for each of a list, and one of zeros where it is empty: C has no empty arrays.
template <class List, class Row>
void BundleTables::table(std::string_view type, std::string_view zeros, const std::string& name, const List& list,
                         const Row& row) {
  put("\nstatic const {} {}[] = {{\n", type, name);
  for (const auto& item : list) text_ += "  " + row(item) + ",\n";
  if (list.empty()) put("  {},\n", zeros);
  text_ += "};\n";
}

void BundleTables::ofEntry(size_t number) {
  const BundleEntry& entry = bundle_.entries[number];
  const Loaded& loaded = loaded_[number];
  const auto named = [&](const char* what) { return fmt::format("aglow_{}_{}", what, number); };
  std::vector<Place> places;
  table("struct step", "{0, 0, {0, 0}, {0, 0}, 0, 0}", named("steps"), loaded.steps, [&](const Step& step) {
    const size_t first = places.size();
    places.insert(places.end(), step.arguments.begin(), step.arguments.end());
    groupItems_ = std::max(groupItems_, step.group[0] * step.group[1]);
    return fmt::format("{{{}, {}, {{{}, {}}}, {{{}, {}}}, {}, {}}}", step.kernel, step.instr, step.items[0],
                       step.items[1], step.group[0], step.group[1], first, step.arguments.size());
  });
  table("struct place", "{0, 0}", named("places"), places, [&](const Place& place) {
    const Slot& slot = plans_[number].slots[place.slot];
    return fmt::format("{{{}, {}}}", static_cast<int>(slot.use), slot.offset + place.offset);
  });
  size_t at = 0;
  table("struct tensor", "{0, 0, 0, 0}", named("tensors"), entry.memory.placeholders(), [&](RegionId id) {
    const Region& region = entry.program[id];
    const Access access = region.as<PlaceholderInit>()->access;
    return fmt::format("{{{}, {}, {:d}, {:d}}}", entry.offsets[at++], region.type.bytes(), reads(access),
                       writes(access));
  });
  table("int", "0", named("checked"), loaded.checked, [](size_t instr) { return fmt::to_string(instr); });
  steps_ += loaded.steps.size();
  faults_ = std::max(faults_, loaded.checked.size());
}

void BundleTables::ofAll() {
  size_t number = 0;
  table("struct entry", "{0, 0, 0, 0, 0, 0, 0}", "aglow_entries", loaded_, [&](const Loaded& loaded) {
    const size_t i = number++;
    return fmt::format("{{aglow_steps_{0}, {1}, aglow_places_{0}, aglow_tensors_{0}, {2}, aglow_checked_{0}, {3}}}", i,
                       loaded.steps.size(), bundle_.entries[i].memory.placeholders().size(), loaded.checked.size());
  });
  table("struct initial", "{0, 0, 0}", "aglow_initials", bundle_.states, [](const codegen::BundleState& state) {
    return fmt::format("{{{}, {}, {}}}", state.offset, state.region.type.bytes(), state.initial);
  });
  put("\nstatic const size_t aglow_buffer_bytes[AGLOW_BUFFERS] = {{{}}};\n", fmt::join(bytes_, ", "));
  const bool f64 = !pairs_ && std::any_of(loaded_.begin(), loaded_.end(),
                                          [&](const Loaded& loaded) { return !loaded.computesF64(kernels_).empty(); });
  put("\nenum {{ AGLOW_STEPS = {}, AGLOW_FAULT_COUNT = {}, AGLOW_ENTRIES = {}, AGLOW_INITIALS = {},\n"
      "       AGLOW_GROUP_ITEMS = {}, AGLOW_STATUS_BITS = {}, AGLOW_NEEDS_F64 = {:d}, AGLOW_F64_PAIRS = {:d} }};\n",
      std::max<size_t>(steps_, 1), std::max<size_t>(faults_, 1), loaded_.size(), bundle_.states.size(), groupItems_,
      codegen::kStatusBits, f64, pairs_);
  put("#define AGLOW_LARGEST_BUFFER UINT64_C({})\n", *std::max_element(bytes_.begin(), bytes_.end()));
}

}  // namespace aglow::device
