// How many queries and keys of an attention meet at once, and which groups do which of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "codegen/clike/kernel_writer.h"
#include "support/sizes.h"

namespace aglow::codegen {

constexpr int64_t kAttentionLanes = 16;  // of vectors, and items along each side of a group

struct AttentionSizes {
  int64_t batch, heads, groups, queries, keys, width, valueWidth;

  AttentionSizes(const Type& q, const Type& k, const Type& v)
      : batch(q.dim(0)),
        heads(q.dim(1)),
        groups(k.dim(1)),
        queries(q.dim(2)),
        keys(k.dim(2)),
        width(q.dim(3)),
        valueWidth(v.dim(3)) {}
};

// How many queries and keys meet at once, and what they need of local memory.
struct AttentionBlocks {
  int64_t queries = 0, keys = 0;
  int64_t rows = 0;    // queries whose sums are kept in registers: of an item, or one for each item along a side
  int64_t values = 0;  // elements of a value, whole vectors
  int64_t slice = 0;   // elements of queries, keys and values that are there at once
  bool shared = false;

  // Of a group that shares them rows are one element longer, so that neighbouring rows begin in different banks.
  int64_t pad() const { return shared ? 1 : 0; }
  int64_t bytes(const AttentionSizes& s) const {
    const int64_t keysAndValues = shared ? keys * (longest(s) + 1) : keys * (s.width + values);
    const int64_t sums = shared ? 0 : queries * values;
    const int64_t elements =
        queries * (queryLength(s) + pad()) + keysAndValues + queries * (keys + pad()) + sums + 3 * queries;
    return elements * elemBytes(ElemKind::Float32);
  }
  int64_t queryLength(const AttentionSizes& s) const { return std::min(s.width, slice); }
  int64_t longest(const AttentionSizes& s) const { return std::min(std::max(s.width, values), slice); }
  // Sums of weighted values in registers of an item.
  int64_t ownSums() const { return queries / kAttentionLanes * (values / kAttentionLanes); }
};

// As large as local memory and registers let them be; empty where not even the smallest fit.
std::optional<AttentionBlocks> blocksFor(const AttentionSizes& s, const DeviceShape& shape);

// Rounds over blocks of keys, and how many of them a group does. Several share the keys of a query where the queries
// alone are not enough for the device.
struct AttentionRounds {
  int64_t all = 1, each = 1;
  int64_t parts() const { return ceilDiv(all, each); }
};

AttentionRounds roundsFor(const AttentionSizes& s, const Attrs& attrs, const AttentionBlocks& b,
                          const DeviceShape& shape);

}  // namespace aglow::codegen
