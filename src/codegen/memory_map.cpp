#include "codegen/memory_map.h"

#include "codegen/constant_pool.h"

namespace aglow::codegen {

int64_t aligned(int64_t bytes) { return (bytes + Program::kAlignment - 1) / Program::kAlignment * Program::kAlignment; }

MemoryMap::MemoryMap(const Program& program, ConstantPool* pool) : addresses_(program.regions.size()) {
  AGLOW_CHECK(program.placed(), "code is generated for placed programs");
  activationBytes_ = program.arenaBytes;
  const std::vector<Extent> extents = program.extents();
  for (size_t i = 0; i < program.regions.size(); ++i) {
    const Region& region = program.regions[i];
    const auto id = static_cast<RegionId>(i);
    if (const auto* allocated = region.as<Allocated>()) {
      addresses_[i] = {kActivations, allocated->offset};
    } else if (region.as<PlaceholderInit>() != nullptr) {
      addresses_[i] = {bases(), 0};
      placeholders_.push_back(id);
    } else if (region.declared()) {
      addresses_[i] = {kConstants, pool == nullptr ? constantBytes_ : pool->place(initialValue(region))};
      constants_.push_back(id);
      constantBytes_ = pool == nullptr ? constantBytes_ + aligned(region.type.bytes()) : pool->bytes();
    }
  }
  for (size_t i = 0; i < program.regions.size(); ++i) {
    if (program.regions[i].as<ViewOf>() == nullptr) continue;
    const Address root = addresses_[static_cast<size_t>(extents[i].root)];
    addresses_[i] = {root.base, root.offset + extents[i].begin};
  }
}

}  // namespace aglow::codegen
