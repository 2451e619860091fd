// Decisions on register tiles, from the sizes of caches and measured limits.
#include "backends/cpu/kernels/gemm/tile_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/sizes.h"

namespace aglow::cpu {

namespace {

constexpr int64_t kBytes = sizeof(float);
constexpr int64_t kLineBytes = 64;

int64_t imagesOf(const TileDesc& d) { return d.images[0] * d.images[1] * d.images[2]; }
int64_t blocksOf(const TileDesc& d) { return ceilDiv(d.channels, d.block); }
int64_t unitsOf(const TileDesc& d) { return imagesOf(d) * d.tileGroups * d.panelGroups; }

// Blocks of weights take twice the registers.
constexpr int64_t kHighestOfBlocks = 12;

bool multipliesBlocks(TileElement element, const Machine& machine) {
  if (machine.lanes != 4) return false;
  return element == TileElement::FourBytes ? machine.byteBlocks
                                           : element == TileElement::TwoHalves && machine.halfBlocks;
}

// Rows of results are cut so that tiles differ by one column at most.
int64_t cutRows(TileDesc& d, int64_t highest) {
  d.tiles = ceilDiv(d.outWidth, highest);
  const int64_t rows = ceilDiv(d.outWidth, d.tiles);
  d.tall = d.outWidth - d.tiles * (rows - 1);
  d.left = std::min(ceilDiv(d.px, d.sx), rows);
  const int64_t lastInside = floorDiv(d.width - 1 + d.px - (d.kw - 1) * d.dx, d.sx);
  d.right = std::clamp<int64_t>(d.outWidth - 1 - lastInside, 0, rows);
  return rows;
}

// Passes keep what all tiles read of a panel in the second-level cache, and rows of matrices, which lie far apart, in
// the first.
int64_t passesOf(const TileDesc& d, int64_t panelBytes, const Machine& machine) {
  constexpr int64_t kDeep = 1024, kPassDepth = 384;
  if (d.outHeight * d.tiles < 4) return 1;
  if (d.kh * d.kw > 1) return ceilDiv(panelBytes, machine.l2 / 2);
  return d.channels > kDeep ? ceilDiv(d.channels, kPassDepth) : 1;
}

// Whether every part of the positions ends where a tile does.
bool endsWithTiles(const TileDesc& d, int64_t rows, int64_t parts) {
  const int64_t positions = d.outHeight * d.outWidth, allTiles = d.outHeight * d.tiles;
  if (positions % parts != 0 || parts > allTiles) return false;
  for (int64_t part = 1; part < parts; ++part) {
    const int64_t tile = part * allTiles / parts, inRow = tile % d.tiles;
    const int64_t position = tile / d.tiles * d.outWidth + inRow * rows - std::max<int64_t>(inRow - d.tall, 0);
    if (position != part * (positions / parts)) return false;
  }
  return true;
}

// Parts of positions read all weights, which others of the chain do as well; those of panels read the whole input.
bool maybeCut(const TileDesc& d, const TileCut& cut, int64_t rows, int64_t weightBytes, int64_t fitting,
              const Machine& machine) {
  if (cut.along == TileCut::Along::Positions)
    return weightBytes <= machine.l2 / 4 && cut.parts >= fitting && endsWithTiles(d, rows, cut.parts);
  return fitting == 1 && d.panels == d.panelsPerGroup && d.panels % cut.parts == 0 &&
         d.columns == d.panels * 2 * machine.lanes;
}

}  // namespace

TileElement tileElementOf(ElemKind kind) {
  return kind == ElemKind::BFloat16   ? TileElement::TwoHalves
         : elementsTogether(kind) > 1 ? TileElement::FourBytes
                                      : TileElement::Float;
}

int64_t elementsTogether(ElemKind kind) { return kBytes / static_cast<int64_t>(elemBytes(kind)); }

Decision multipliesPairs(ElemKind kind, const Machine& machine) {
  if (tileElementOf(kind) != TileElement::TwoHalves || machine.lanes != 8) return Decision::yes();
  return Decision::no("needs vectors of 4 or 16 lanes for pairs of bf16, has 8");
}

int64_t highestTile(const Machine& machine) { return machine.registers >= 32 ? 14 : 6; }

TileDesc matrixTiles(int64_t rows, int64_t depth, int64_t columns, const Machine& machine) {
  const int64_t lanes = machine.lanes, panel = 2 * lanes;
  TileDesc d{};
  d.x = {.operand = 1, .offset = 0};
  d.w = {.operand = 2, .offset = 0};
  d.partial = {.operand = 3, .offset = 0};
  std::fill_n(d.images, 3, 1);
  d.channels = depth;
  d.block = d.xBlock = 16;
  d.xColumn = depth;
  d.xChannel = 1;
  d.wPanel = depth * panel;
  d.wRow = panel;
  d.height = d.outHeight = d.kh = d.kw = d.sy = d.sx = d.dy = d.dx = 1;
  d.width = d.outWidth = rows;
  d.panels = d.panelsPerGroup = ceilDiv(columns, panel);
  d.vectors = ceilDiv(columns, lanes);
  d.columns = columns;
  d.matrix = 1;
  return d;
}

KernelStep planTiles(TileDesc& d, const Machine& machine, TileElement element) {
  std::optional<TileCut> none;
  return planTiles(d, machine, none, element);
}

KernelStep planTiles(TileDesc& d, const Machine& machine, std::optional<TileCut>& cut, TileElement element) {
  constexpr double kUnitFlops = 1e6;  // worth the handing over to a thread
  constexpr int64_t kUnits = 64, kUnitsWithPasses = 16;
  constexpr std::string_view kNames[] = {"tiles", "byte_tiles", "pair_tiles"},
                             kBlockNames[] = {"", "byte_blocks", "pair_blocks"};
  const bool inBlocks = multipliesBlocks(element, machine) && d.outWidth > 1;
  const int64_t panel = 2 * machine.lanes, rows = cutRows(d, inBlocks ? kHighestOfBlocks : highestTile(machine));
  const int64_t allTiles = d.outHeight * d.tiles, images = imagesOf(d);
  const int64_t panelBytes = d.channels * d.kh * d.kw * panel * kBytes;
  const bool oneFilter = d.wImage[0] == 0 && d.wImage[1] == 0 && d.wImage[2] == 0;
  const int64_t weightBytes = (oneFilter ? 1 : images) * d.panels * panelBytes;
  const bool weightsFit = weightBytes <= machine.l2 / 2;

  const int64_t passes = passesOf(d, panelBytes, machine);
  d.passBlocks = std::max<int64_t>(ceilDiv(blocksOf(d), passes), 1);
  const bool exact = element == TileElement::FourBytes;
  d.spanBlocks = exact ? std::max<int64_t>(blocksOf(d), 1)
                       : std::max<int64_t>(ceilDiv(spanDepth(d.channels * d.kh * d.kw), d.block * d.kh * d.kw), 1);
  constexpr int64_t kManyTotals = 16;
  d.wide = !exact && ceilDiv(blocksOf(d), std::min(d.passBlocks, d.spanBlocks)) > kManyTotals ? 1 : 0;

  // What a group of tiles reads stays in the second-level cache for all its panels.
  const int64_t inputBytes = d.panels / d.panelsPerGroup * d.channels * d.height * d.width * kBytes;
  const int64_t fitting =
      d.panels == d.panelsPerGroup && d.panels > 1 ? ceilDiv(inputBytes / passes, machine.l2 / 2) : 1;
  const auto most = static_cast<int64_t>(tileFlops(d, machine) / kUnitFlops) / images;
  const int64_t wanted = std::clamp<int64_t>(most, 1, ceilDiv(passes > 1 ? kUnitsWithPasses : kUnits, images));
  d.tileGroups = std::clamp<int64_t>(weightsFit ? std::max(fitting, wanted) : fitting, 1, allTiles);
  // Even groups: a unit of two panels among units of one would be waited for.
  const int64_t panelsOfUnit = std::max<int64_t>(d.panels / ceilDiv(wanted, d.tileGroups), 1);
  d.panelGroups = std::max<int64_t>(ceilDiv(d.panels, panelsOfUnit), 1);
  if (cut && !maybeCut(d, *cut, rows, weightBytes, fitting, machine)) cut.reset();
  if (cut) {
    const bool positions = cut->along == TileCut::Along::Positions;
    d.tileGroups = positions ? cut->parts : 1;
    d.panelGroups = positions ? 1 : cut->parts;
  }

  const int64_t unitTiles = ceilDiv(allTiles, d.tileGroups), unitPanels = ceilDiv(d.panels, d.panelGroups);
  d.unitPartials = d.passBlocks < blocksOf(d) ? unitTiles * unitPanels * rows * panel * (d.wide ? 2 : 1) : 0;

  constexpr int64_t kShort = 128;
  d.direct = d.channels * d.kh * d.kw <= kShort ? 1 : 0;
  d.prefetchable = ceilDiv(d.block * panel * kBytes, kLineBytes);
  d.prefetch = weightsFit || d.wRow != panel ? 0 : ceilDiv(d.prefetchable, unitTiles);

  const auto name = (inBlocks ? kBlockNames : kNames)[static_cast<size_t>(element)];
  KernelStep step{.kernel = fmt::format("{}_r{}_w{}", name, rows, machine.lanes),
                  .descriptor = descriptorBytes(d),
                  .units = unitsOf(d),
                  .functions = {{.kind = FunctionParam::Kind::Epilogue}}};
  using Kind = FunctionParam::Kind;
  if (exact) step.functions.push_back({.kind = inBlocks ? Kind::BlockDot : Kind::Dot});
  if (element == TileElement::TwoHalves)
    step.functions.push_back({.kind = inBlocks ? Kind::PairBlockDot : Kind::PairDot});
  return step;
}

int64_t partialElements(const TileDesc& d) { return unitsOf(d) * d.unitPartials; }

int64_t spanDepth(int64_t depth) {
  constexpr int64_t kLongest = 1024;
  return std::max<int64_t>(ceilDiv(depth, std::max<int64_t>(ceilDiv(depth, kLongest), 1)), 1);
}

double tileFlops(const TileDesc& d, const Machine& machine) {
  return 2. * static_cast<double>(imagesOf(d)) * static_cast<double>(d.outHeight * d.outWidth) *
         static_cast<double>(d.kh * d.kw * d.channels) * static_cast<double>(d.vectors * machine.lanes);
}

}  // namespace aglow::cpu
