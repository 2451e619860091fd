// What the kernels of Observe know. A value is cut into items of neighbouring rows of one block of channels, and units
// of some items count in tables of their own; what they found is then put together in a fixed order.
#pragma once

#include "backends/cpu/kernels/walk.h"
#include "ops/observed.h"

namespace aglow::cpu {

// Neighbours often fall into one bin, above all into that of zero: with several tables an increment does not wait for
// the one before it.
inline constexpr int64_t kCountTables = 4;

struct ObserveDesc {
  ObservedForm form;
  int64_t channels;
  HistogramBins bins;
  int64_t pieceRows, pieces;  // rows of an item; items of a block of channels
  Items items;
  int64_t stride;  // from one table to the next, in counts: not a power of two, which would compete for places

  // Working memory: what items found of each lane, in rows, then the tables of each unit.
  int64_t itemDoubles() const { return kObservedRows * form.lanes; }
  int64_t unitCounts() const { return kCountTables * stride; }
  int64_t foundBytes() const { return items.count * itemDoubles() * static_cast<int64_t>(sizeof(double)); }
};

}  // namespace aglow::cpu
