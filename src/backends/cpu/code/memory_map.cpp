#include "backends/cpu/code/memory_map.h"

#include "backends/cpu/code/constant_pool.h"

namespace aglow::codegen {

int64_t aligned(int64_t bytes) { return (bytes + Program::kAlignment - 1) / Program::kAlignment * Program::kAlignment; }

MemoryMap::MemoryMap(const Program& program) : addresses_(program.regions.size()) { place(program, nullptr); }

MemoryMap::MemoryMap(const Program& program, ConstantPool& pool) : addresses_(program.regions.size()) {
  place(program, &pool);
}

void MemoryMap::place(const Program& program, ConstantPool* pool) {
  AGLOW_CHECK(program.placed(), "code is generated for placed programs");
  activationBytes_ = program.arenaBytes;
  for (size_t i = 0; i < program.regions.size(); ++i) {
    const Region& region = program.regions[i];
    const auto id = static_cast<RegionId>(i);
    if (const auto* allocated = region.as<Allocated>()) {
      addresses_[i] = {kActivations, allocated->offset};
    } else if (region.as<PlaceholderInit>() != nullptr) {
      addresses_[i] = {bases_++, 0};
      placeholders_.push_back(id);
    } else if (region.isState()) {
      states_.push_back(id);
    } else if (region.declared()) {
      constants_.push_back(id);
    }
  }
  for (const RegionId id : states_) addresses_[static_cast<size_t>(id)] = {bases_++, 0};
  for (const RegionId id : constants_) {
    const Region& region = program[id];
    addresses_[static_cast<size_t>(id)] =
        pool == nullptr ? Address{bases_++, 0} : Address{kConstants, pool->place(region.as<ConstantInit>()->bytes)};
    constantBytes_ = pool == nullptr ? constantBytes_ + aligned(region.type.bytes()) : pool->bytes();
  }
  const std::vector<Extent> extents = program.extents();
  for (size_t i = 0; i < program.regions.size(); ++i) {
    if (program.regions[i].as<ViewOf>() == nullptr) continue;
    const Address root = addresses_[static_cast<size_t>(extents[i].root)];
    addresses_[i] = {root.base, root.offset + extents[i].begin};
  }
}

}  // namespace aglow::codegen
