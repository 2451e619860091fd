#include "codegen/clike/tile_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/check.h"
#include "support/sizes.h"

namespace aglow::codegen {

namespace {

constexpr GroupTile kTiles[] = {
    {.rows = 128, .columns = 128, .depth = 16, .ownRows = 8, .ownColumns = 8},
    {.rows = 128, .columns = 128, .depth = 8, .ownRows = 8, .ownColumns = 8},
    {.rows = 64, .columns = 128, .depth = 16, .ownRows = 8, .ownColumns = 8},
    {.rows = 64, .columns = 128, .depth = 8, .ownRows = 8, .ownColumns = 8},
    {.rows = 128, .columns = 64, .depth = 16, .ownRows = 8, .ownColumns = 8},
    {.rows = 64, .columns = 64, .depth = 16, .ownRows = 8, .ownColumns = 8},
    {.rows = 32, .columns = 64, .depth = 16, .ownRows = 8, .ownColumns = 8},
    {.rows = 64, .columns = 64, .depth = 16, .ownRows = 4, .ownColumns = 4},
    {.rows = 32, .columns = 32, .depth = 16, .ownRows = 4, .ownColumns = 4},
    {.rows = 32, .columns = 32, .depth = 8, .ownRows = 4, .ownColumns = 4},
};
constexpr GroupTile kHalfTiles[] = {
    {.rows = 128, .columns = 128, .depth = 32, .ownRows = 64, .ownColumns = 32, .halves = true},
    {.rows = 128, .columns = 64, .depth = 32, .ownRows = 32, .ownColumns = 32, .halves = true},
    {.rows = 64, .columns = 128, .depth = 32, .ownRows = 32, .ownColumns = 32, .halves = true},
    {.rows = 64, .columns = 64, .depth = 64, .ownRows = 32, .ownColumns = 32, .halves = true},
    {.rows = 64, .columns = 64, .depth = 32, .ownRows = 32, .ownColumns = 32, .halves = true},
    {.rows = 64, .columns = 64, .depth = 32, .ownRows = 16, .ownColumns = 32, .halves = true},
    {.rows = 32, .columns = 64, .depth = 64, .ownRows = 16, .ownColumns = 32, .halves = true},
    {.rows = 32, .columns = 64, .depth = 32, .ownRows = 16, .ownColumns = 32, .halves = true},
};

// Cycles of a unit of a GPU, fitted to measurements of all these tiles with the layers of ResNet-50 and BERT.
struct Costs {
  double launch, addParts;  // of a kernel, and of one more that adds up parts
  double wait, waitOfLoad;  // for memory in each step, and more for each load of an item
  double multiply;          // of 32 items: one multiplication of theirs, of four elements each or of 16 x 8 x 16
  double leftLoad, rightLoad, gather;  // of 32 items
  double result, partByte;             // to hand on one, and to move one of a part through memory
  double room;                         // for items
};
constexpr Costs kCosts{.launch = 16800,
                       .addParts = 2820,
                       .wait = 2240,
                       .waitOfLoad = 81.6,
                       .multiply = 1.42,
                       .leftLoad = 12.4,
                       .rightLoad = 5.77,
                       .gather = 11.6,
                       .result = 0.307,
                       .partByte = 0.0433,
                       .room = 6100};
constexpr Costs kHalfCosts{.launch = 3440,
                           .addParts = 9680,
                           .wait = 2140,
                           .waitOfLoad = 78.5,
                           .multiply = 5.51,
                           .leftLoad = 10.7,
                           .rightLoad = 10.8,
                           .gather = 11,
                           .result = 0.369,
                           .partByte = 0.0163,
                           .room = 759};

// Of halves on both sides along k: fitted to which tiles were quickest with the layers of ResNet-50.
constexpr Costs kLineCosts{.launch = 43300,
                           .addParts = 15300,
                           .wait = 1650,
                           .waitOfLoad = 44.3,
                           .multiply = 9.18,
                           .leftLoad = 8.38,
                           .rightLoad = 8.38,
                           .gather = 8.38,
                           .result = 0.484,
                           .partByte = 0.018,
                           .room = 383};

double cyclesOf(const GroupTile& tile, const ProductSizes& s, const DeviceShape& shape) {
  const Costs& costs = tile.columnLines ? kLineCosts : tile.halves ? kHalfCosts : kCosts;
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  const double units = number(std::max<int64_t>(shape.computeUnits, 1));
  const double groups = std::ceil(number(s.batch) * number(ceilDiv(s.m, tile.rows)) *
                                  number(ceilDiv(s.n, tile.columns)) * number(tile.partCount(s)) / units);
  const double together = std::min(groups, std::max(1.0, std::floor(costs.room / number(tile.items()))));
  const double left = number(tile.rows * tile.depth) / (tile.columnLines && s.gathers ? 32 : tile.halves ? 256 : 128);
  const double right = number(tile.columns * tile.depth) / (s.gathers ? 32 : tile.columnLines ? 256 : 128);
  // Items with fewer sums read local memory more often for each of them.
  const double often = !tile.halves && tile.ownRows < 8 ? 1.35 : 1;
  const double products = often * number(tile.rows * tile.columns * tile.depth) / (tile.halves ? 2048 : 128);
  const double issued =
      costs.multiply * products + costs.leftLoad * left + (s.gathers ? costs.gather : costs.rightLoad) * right;
  const double waited = costs.wait + costs.waitOfLoad * (left + right) * 32 / number(tile.items());
  const double steps = number(tile.part(s) / tile.depth);
  double cycles = costs.launch + groups / together * steps * std::max(waited, together * issued) +
                  groups * costs.result * number(tile.rows * tile.columns);
  if (tile.partCount(s) > 1)
    cycles += costs.addParts + costs.partByte * number(s.batch) * number(s.m) * number(s.n) *
                                   number(elemBytes(s.sums) * (2 * tile.parts + 1)) / units;
  return cycles;
}

}  // namespace

int64_t GroupTile::part(const ProductSizes& sizes) const {
  return ceilDiv(std::max<int64_t>(ceilDiv(sizes.k, parts), 1), depth) * depth;
}

int64_t GroupTile::partCount(const ProductSizes& sizes) const {
  return std::max<int64_t>(ceilDiv(sizes.k, part(sizes)), 1);
}

int64_t GroupTile::stageBytes(ElemKind held) const { return elemBytes(held) * (leftElements() + rightElements()); }

int64_t GroupTile::stagedRows() const { return halves ? rows / ownRows * 16 : rows / ownRows * 4; }

int64_t GroupTile::localBytes(ElemKind held) const {
  const int64_t results =
      stagedRows() * (columns + (halves ? 4 : 0)) * (halves ? elemBytes(ElemKind::Float32) : elemBytes(held));
  return std::max(stages * stageBytes(held), results);
}

bool emulates(ElemKind kind, const DeviceShape& shape) { return kind == ElemKind::Float64 && shape.pairs; }

bool sharesTiles(ElemKind sums, const DeviceShape& shape) {
  constexpr int64_t kLeastBytes = 16 << 10;
  return !emulates(sums, shape) && shape.sharesLocal && shape.groupItems >= 256 && shape.localBytes >= kLeastBytes;
}

bool multipliesHalves(const ProductSizes& sizes, const DeviceShape& shape) {
  constexpr int64_t kFew = 8;
  return shape.multipliesHalves && sharesTiles(sizes.sums, shape) && sizes.m >= kFew && sizes.n >= kFew &&
         sizes.k >= kFew;
}

int64_t wholeOf(const Attrs& attrs, int64_t own) {
  return attrs.indexOf("whole") < 0 ? own : std::max(own, attrs.integer("whole"));
}

std::string question(const ProductSizes& s, std::string_view how) {
  return fmt::format("{} {}x{}x{}x{} {} {}{}{}", how, s.batch, s.m, s.n, s.k, elemName(s.held), elemName(s.sums),
                     s.gathers ? " gathers" : "", s.alongK ? " along k" : "");
}

GroupTile chooseTile(const ProductSizes& sizes, const DeviceShape& shape, bool splits) {
  std::vector<std::pair<double, GroupTile>> found;  // with their cycles
  const auto consider = [&](GroupTile tile) {
    // Where copies go by themselves, several are on their way at once.
    constexpr int64_t kMostStages = 4;
    tile.columnLines = tile.halves && sizes.alongK;
    if (shape.copiesAhead)
      tile.stages = std::clamp<int64_t>(shape.localBytes / tile.stageBytes(sizes.held), 2, kMostStages);
    if (tile.items() > shape.groupItems || tile.localBytes(sizes.held) > shape.localBytes) return;
    constexpr int64_t kMostParts = 16, kLeastSteps = 4;
    for (tile.parts = 1; tile.parts <= (splits ? kMostParts : 1); tile.parts *= 2) {
      if (tile.parts > 1 && sizes.k < tile.parts * kLeastSteps * tile.depth) break;
      found.emplace_back(cyclesOf(tile, sizes, shape), tile);
    }
  };
  if (sizes.held == ElemKind::Float16)
    std::for_each(std::begin(kHalfTiles), std::end(kHalfTiles), consider);
  else
    std::for_each(std::begin(kTiles), std::end(kTiles), consider);
  AGLOW_CHECK(!found.empty(), "a tile that local memory holds");
  return cheapestOr(shape.ways, question(sizes, splits ? "shared tiles in parts" : "shared tiles"), std::move(found),
                    [](const GroupTile& t) {
                      return fmt::format("{}x{}x{} by {}x{} in {}", t.rows, t.columns, t.depth, t.ownRows, t.ownColumns,
                                         t.parts);
                    });
}

int64_t partBytes(const ProductSizes& sizes, const GroupTile& tile) {
  const int64_t parts = tile.partCount(sizes);
  return parts == 1 ? 0 : parts * sizes.batch * sizes.m * sizes.n * elemBytes(sizes.sums);
}

}  // namespace aglow::codegen
