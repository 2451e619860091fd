#include "codegen/clike/row_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "support/sizes.h"

namespace aglow::codegen {

namespace {

// An item by itself has no number, and waits for nobody.
std::vector<Word> wordsOf(int64_t items) {
  return {{"items", items},
          {"item", items == 1 ? "0" : "(int32_t)LOCAL_ITEM(0)"},
          {"barrier", items == 1 ? "" : "BARRIER();"}};
}

// What each item of a group has of each digit.
constexpr std::string_view kCounts = R"(LOCAL_ARRAY $I counts[$digits * $pitch];
const int32_t item = $item;
for (int32_t digit = 0; digit < $digits; ++digit) counts[digit * $pitch + item] = 0;
const $I begin = (($I)GROUP(0) * $items + item) * $share;
const $I end = begin + $share < $updates ? begin + $share : $updates;
for ($I i = begin; i < end; ++i) {
  const $I own = $number;
  ++counts[(row[own] >> $shift & $mask) * $pitch + item];
}
$barrier
)";

constexpr std::string_view kTotals = R"(for (int32_t digit = item; digit < $digits; digit += $items) {
  $I total = 0;
  for (int32_t i = 0; i < $items; ++i) total += counts[digit * $pitch + i];
  starts[digit * $groups + GROUP(0)] = total;
}
)";

// What is before each count, by one group.
constexpr std::string_view kStarts = R"(LOCAL_ARRAY $I sums[$items];
const int32_t item = $item;
const $I begin = item * $part, end = begin + $part < $all ? begin + $part : $all;
$I sum = 0;
for ($I i = begin; i < end; ++i) sum += starts[i];
sums[item] = sum;
$barrier
sum = 0;
for (int32_t i = 0; i < item; ++i) sum += sums[i];
for ($I i = begin; i < end; ++i) {
  const $I own = starts[i];
  starts[i] = sum;
  sum += own;
}
)";

constexpr std::string_view kPlaces = R"(for (int32_t digit = item; digit < $digits; digit += $items) {
  $I before = starts[digit * $groups + GROUP(0)];
  for (int32_t i = 0; i < $items; ++i) {
    const $I own = counts[digit * $pitch + i];
    counts[digit * $pitch + i] = before;
    before += own;
  }
}
$barrier
for ($I i = begin; i < end; ++i) {
  const $I own = $number;
  order[$to + counts[(row[own] >> $shift & $mask) * $pitch + item]++] = own;
}
)";

constexpr std::string_view kEnds = R"(const $I own = row[$number];
if (point == 0 || row[$before] != own) firsts[own] = point;
if (point == $last || row[$after] != own) ends[own] = point + 1;
)";

}  // namespace

// Items that work side by side have few digits and elements each; those of a processor, which walk by themselves, many.
RowOrder RowOrder::of(int64_t rows, int64_t updates, const DeviceShape& shape) {
  RowOrder order{.rows = rows, .updates = updates};
  if (std::max(rows, updates) > std::numeric_limits<int32_t>::max() / 2) order.kind = ElemKind::Int64;
  const int64_t units = std::max<int64_t>(shape.computeUnits, 1);
  if (shape.sharesLocal) {
    constexpr int64_t kItems = 128, kLeast = 4, kMost = 16;
    order.bits = 4;
    order.items = std::min(kItems, shape.groupItems);
    order.share = std::clamp(ceilDiv(updates, order.items * units), kLeast, kMost);
  } else {
    constexpr int64_t kLeast = 1024, kSharesOfUnit = 4;
    order.bits = 8;
    order.items = 1;
    order.share = std::max(ceilDiv(updates, units * kSharesOfUnit), kLeast);
  }
  order.groups = ceilDiv(updates, order.items * order.share);
  order.rounds = ceilDiv(std::bit_width(static_cast<uint64_t>(rows - 1)), order.bits);
  return order;
}

int64_t RowOrder::bytes() const {
  return (2 * rows + updates + orderLength() + (rounds > 0 ? digits() * groups : 0)) * elemBytes(kind);
}

void RowOrder::declare(KernelWriter& writer, std::initializer_list<std::string_view> names) const {
  const int64_t lists = 2 * rows, orders = lists + updates;
  const std::pair<std::string_view, int64_t> places[] = {
      {"firsts", 0}, {"ends", rows}, {"row", lists}, {"order", orders}, {"starts", orders + orderLength()}};
  for (const auto& [name, begin] : places)
    if (std::find(names.begin(), names.end(), name) != names.end()) writer.scratch(std::string(name), kind, begin);
}

std::string RowOrder::begin() const {
  return fmt::format("if (point < {}) ends[point] = 0;\nif (point >= {}) return;\n", rows, updates);
}

std::string RowOrder::numberAfter(int64_t round, const std::string& place) const {
  return round == 0 ? place : fmt::format("order[{} + {}]", (round + 1) % 2 * updates, place);
}

std::string RowOrder::text(std::string_view what, int64_t round) const {
  std::vector<Word> words = wordsOf(items);
  words.insert(words.end(), {{"I", typeName(kind)},
                             {"digits", digits()},
                             {"mask", digits() - 1},
                             {"shift", round * bits},
                             // A bank of its own for each item.
                             {"pitch", items == 1 ? 1 : items + 1},
                             {"share", share},
                             {"groups", groups},
                             {"updates", updates},
                             {"number", numberAfter(round, "i")},
                             {"to", round % 2 * updates}});
  return fill(what, words);
}

std::vector<Launch> RowOrder::launches(const Program& program, const Instr& instr, const DeviceShape& shape) const {
  std::vector<Launch> launches;
  const auto writerOf = [&](std::initializer_list<std::string_view> names) {
    KernelWriter writer(program, instr, shape);
    declare(writer, names);
    return writer;
  };
  constexpr int64_t kItems = 256;
  const int64_t all = digits() * groups, together = shape.sharesLocal ? std::min(kItems, shape.groupItems) : 1;
  std::vector<Word> words = wordsOf(together);
  words.insert(words.end(), {{"I", typeName(kind)}, {"part", ceilDiv(all, together)}, {"all", all}});
  const std::string starts = fill(kStarts, words);
  for (int64_t round = 0; round < rounds; ++round) {
    const std::array<int64_t, 2> whole = {groups * items, 1}, group = {items, 1};
    const std::string counts = text(kCounts, round);
    launches.push_back(writerOf({"row", "order", "starts"}).finish(counts + text(kTotals, round), whole, group));
    launches.push_back(writerOf({"starts"}).finish(starts, {together, 1}, {together, 1}));
    launches.push_back(writerOf({"row", "order", "starts"}).finish(counts + text(kPlaces, round), whole, group));
  }
  launches.push_back(writerOf({"row", "order", "firsts", "ends"})
                         .perPoint(updates, fill(kEnds, {{"I", typeName(kind)},
                                                         {"number", number("point")},
                                                         {"before", number("(point - 1)")},
                                                         {"after", number("(point + 1)")},
                                                         {"last", updates - 1}})));
  return launches;
}

}  // namespace aglow::codegen
