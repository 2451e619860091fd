#include "codegen/clike/attention_blocks.h"

namespace aglow::codegen {

namespace {

// The next multiple of any number, as queries in registers may be.
int64_t wholeRows(int64_t queries, int64_t rows) { return ceilDiv(queries, rows) * rows; }

// With slices of so many elements.
std::optional<AttentionBlocks> blocksFor(const AttentionSizes& s, const DeviceShape& shape, int64_t slice) {
  constexpr int64_t kManySums = 64, kMostSums = 128;
  AttentionBlocks b{.slice = slice};
  b.shared = shape.sharesLocal && shape.groupItems >= kAttentionLanes * kAttentionLanes;
  b.values = alignUp(s.valueWidth, kAttentionLanes);
  b.rows = b.shared ? kAttentionLanes : std::min<int64_t>(s.queries, 8);
  b.queries = std::min(b.shared ? 4 * b.rows : 32 / b.rows * b.rows, wholeRows(s.queries, b.rows));
  b.keys = std::min<int64_t>(b.shared ? 32 : 64, alignUp(s.keys, kAttentionLanes));
  const int64_t room = b.shared ? shape.localBytes : shape.localBytes / 2;
  while (b.bytes(s) > room || (b.shared && b.ownSums() > (b.queries > b.rows ? kManySums : kMostSums))) {
    if (b.queries > b.rows)
      b.queries = wholeRows(b.queries / 2, b.rows);
    else if (b.keys > kAttentionLanes && b.bytes(s) > room)
      b.keys = alignUp(b.keys / 2, kAttentionLanes);
    else
      return std::nullopt;
  }
  return b;
}

}  // namespace

std::optional<AttentionBlocks> blocksFor(const AttentionSizes& s, const DeviceShape& shape) {
  constexpr int64_t kSlice = 64;
  std::optional<AttentionBlocks> whole = blocksFor(s, shape, std::max(s.width, alignUp(s.valueWidth, kAttentionLanes)));
  const bool shared = shape.sharesLocal && shape.groupItems >= kAttentionLanes * kAttentionLanes;
  return whole || !shared ? whole : blocksFor(s, shape, kSlice);
}

AttentionRounds roundsFor(const AttentionSizes& s, const Attrs& attrs, const AttentionBlocks& b,
                          const DeviceShape& shape) {
  constexpr int64_t kGroupsOfUnit = 2, kLeast = 4, kMostParts = 64;
  const int64_t left = attrs.integer("left"), right = attrs.integer("right");
  const int64_t span = left < 0 || right < 0 ? s.keys : std::min(s.keys, b.queries + left + right);
  AttentionRounds rounds{.all = std::max<int64_t>(ceilDiv(span, b.keys), 1)};
  const int64_t groups = ceilDiv(s.queries, b.queries) * s.batch * s.heads;
  const int64_t wanted = b.shared ? kGroupsOfUnit * shape.computeUnits / groups : 1;
  rounds.each = ceilDiv(rounds.all, std::clamp<int64_t>(wanted, 1, kMostParts));
  rounds.each = std::min(std::max(rounds.each, kLeast), rounds.all);
  return rounds;
}

}  // namespace aglow::codegen
