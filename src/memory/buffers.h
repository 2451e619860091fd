// The buffers of a program while a pass merges them: which instruction touches which bytes, and what merging would
// cost.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "inst/lifetimes.h"
#include "inst/program.h"
#include "memory/live_bytes.h"

namespace aglow {

// Takes the marks out of the program; commit() sets them again. In between, instructions keep their numbers.
class Buffers {
public:
  explicit Buffers(Program& program);

  // Where a region's bytes are after the merges so far.
  Extent extent(RegionId id) const;

  // Tries to make `source`, all of an allocated region, live in the bytes of `target`, which instruction `at` computes
  // or copies from it. Refused when both hold different values at some time, or when more bytes would be alive at the
  // program's peak.
  bool moveInto(int32_t at, RegionId target, RegionId source);
  // Tries to read `source` wherever `target` is read, all of an allocated region that only the copy `at` writes.
  bool readInstead(int32_t at, RegionId target, RegionId source);

  // Writes the merges into the program: copies onto themselves go away, results over an operand become @inout, and
  // equal views become one. Reports whether anything was merged.
  bool commit();

private:
  // Which instructions touch which bytes of a root. Joining two costs as much as the smaller one has entries.
  class Touches {
  public:
    void add(int32_t at, int64_t begin, int64_t end);
    void join(Touches&& other, int64_t offset);  // other's bytes begin at offset
    bool any(int64_t begin, int64_t end, int32_t from, int32_t to) const;
    size_t size() const { return entries_.size(); }

  private:
    std::multimap<int32_t, std::pair<int64_t, int64_t>> entries_;
    int64_t shift_ = 0;  // to be added to the bytes of all entries
  };
  struct Root {
    Touches reads, writes;
    Lifetime life;
    int64_t bytes = 0;  // in the arena, aligned; 0 for declared regions
    // Once merged into another region: its bytes lie there.
    RegionId parent = kNoRegion;
    int64_t offset = 0;
  };

  Root& root(RegionId id) { return roots_[static_cast<size_t>(id)]; }
  const Root& root(RegionId id) const { return roots_[static_cast<size_t>(id)]; }
  bool ownsAll(RegionId id) const;
  // Whether an instruction may write a result over these bytes, as far as they are its operands.
  bool overwritable(const Instr& instr, size_t result, const Extent& bytes) const;
  // The number of the result that lies there.
  size_t resultIn(const Instr& instr, const Extent& bytes) const;
  bool merge(RegionId from, const Extent& into);
  void tidy(Instr& instr);

  Program& program_;
  std::vector<Extent> original_;  // of each region, before all merges
  mutable std::vector<Root> roots_;
  LiveBytes live_;
  bool changed_ = false;
};

}  // namespace aglow
