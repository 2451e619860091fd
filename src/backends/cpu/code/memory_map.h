// Where the regions of a placed program lie: from one base address for constants, one for activations, one for each
// placeholder, one for each region of state and, where constants stay where they are, one for each of them.
#pragma once

#include <cstdint>
#include <vector>

#include "inst/program.h"

namespace aglow::codegen {

class ConstantPool;

struct Address {
  int base = 0;
  int64_t offset = 0;
};

class MemoryMap {
public:
  static constexpr int kConstants = 0;
  static constexpr int kActivations = 1;
  static constexpr int kFirstPlaceholder = 2;

  // Constants have bases of their own.
  explicit MemoryMap(const Program& program);
  // Constants lie at offsets from one base, where the pool, which programs may share, puts them.
  MemoryMap(const Program& program, ConstantPool& pool);

  Address operator[](RegionId id) const { return addresses_[static_cast<size_t>(id)]; }
  int bases() const { return bases_; }
  // In order; the bases of placeholders come first, from kFirstPlaceholder on.
  const std::vector<RegionId>& placeholders() const { return placeholders_; }
  const std::vector<RegionId>& states() const { return states_; }
  const std::vector<RegionId>& constants() const { return constants_; }
  int64_t constantBytes() const { return constantBytes_; }
  int64_t activationBytes() const { return activationBytes_; }

private:
  void place(const Program& program, ConstantPool* pool);

  int bases_ = kFirstPlaceholder;
  std::vector<Address> addresses_;
  std::vector<RegionId> placeholders_, states_, constants_;
  int64_t constantBytes_ = 0, activationBytes_ = 0;
};

// Rounded up to the alignment of regions.
int64_t aligned(int64_t bytes);

}  // namespace aglow::codegen
