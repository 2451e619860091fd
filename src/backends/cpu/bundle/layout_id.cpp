// What two bundles have in common that may exchange their weights.
#include <fmt/format.h>

#include "backends/cpu/bundle/bundle.h"
#include "codegen/nest/build.h"
#include "codegen/nest/text.h"
#include "inst/fused.h"
#include "inst/text.h"
#include "support/hash.h"

namespace aglow::codegen {

extern const char* const kCodeHash;  // from cmake/code_hash.cmake

namespace {

class LayoutHash {
public:
  void add(std::string_view text) { hash_ = hashBytes(text.data(), text.size(), hash_); }
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    add(fmt::format(format, std::forward<Args>(args)...));
  }
  uint64_t value() const { return hash_; }

private:
  uint64_t hash_ = 0;
};

// Regions by their numbers: other names change nothing.
void addProgram(LayoutHash& hash, const BundleEntry& entry) {
  Program program = entry.program;
  for (size_t i = 0; i < program.regions.size(); ++i) {
    Region& region = program.regions[i];
    hash.put("{} {}", region.type.text(), region.source.index());
    if (const auto* allocated = region.as<Allocated>()) hash.put("{}", allocated->offset);
    if (const auto* view = region.as<ViewOf>()) hash.put("{} {}", view->base, view->offset);
    if (region.as<ConstantInit>() != nullptr) hash.put("{}", entry.memory[static_cast<RegionId>(i)].offset);
    region.name = fmt::to_string(i);
  }
  hash.put("{} {}", fmt::join(entry.offsets, " "), fmt::join(entry.stateOffsets, " "));
  for (const Instr& instr : program.instrs) {
    hash.put("{} {}", print(program, instr), instr.predicate);
    for (const Instr& step : bodyOf(instr)) hash.add(print(program, step));
    // Numbers that code has instead of constants stand here.
    if (const std::optional<nest::Nest> nest = nest::nestIn(program, instr)) hash.add(nest::print(*nest));
  }
}

}  // namespace

uint64_t layoutOf(const Bundle& bundle) {
  LayoutHash hash;
  hash.add(kCodeHash);
  hash.put("{} {} {}", bundle.triple, bundle.cpu, fmt::join(bundle.features, " "));
  hash.put("{} {}", bundle.constants.bytes(), bundle.stateBytes);
  for (const BundleState& state : bundle.states) hash.put("{} {}", state.offset, state.initial);
  for (const BundleEntry& entry : bundle.entries) addProgram(hash, entry);
  return hash.value();
}

}  // namespace aglow::codegen
