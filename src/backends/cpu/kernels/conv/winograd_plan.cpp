// Plans of Winograd's method. Few channels: runs of tiles small enough that V and M stay in the second-level cache.
// Many channels: the filter streams past, so all tiles meet it at once.
#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/kernels/conv/conv_plan.h"
#include "backends/cpu/kernels/conv/winograd_desc.h"
#include "backends/cpu/kernels/gemm/tile_plan.h"
#include "support/sizes.h"

namespace aglow::cpu {

namespace {

constexpr int64_t kBytes = sizeof(float);
constexpr int64_t kScratch = 3;

// Rows of the products: a position's matrix of the run by the filter's.
TileDesc productsOf(const WinogradDesc& d, const ConvShape& s, int64_t positions, const Machine& machine) {
  const int64_t lanes = machine.lanes;
  TileDesc products = matrixTiles(d.run, s.channels, s.outputs, machine);
  products.matrix = 0;
  products.columns = d.vectors * lanes;
  products.images[2] = positions;
  products.xImage[2] = d.vPosition;
  products.wImage[2] = products.panels * products.wPanel;
  products.block = products.xColumn = lanes;
  products.xBlock = d.run * lanes;
  return products;
}

// Lays out V and M for runs of `run` tiles; gives the elements of both. A line between the matrices keeps them from
// falling into the same sets of the cache.
int64_t layOut(WinogradDesc& d, int64_t run, int64_t positions, int64_t lanes) {
  constexpr int64_t kLine = 16;
  d.run = run;
  d.vPosition = d.blocks * run * lanes + kLine;
  d.mPosition = d.vectors * run * lanes + kLine;
  d.vOffset = 0;
  d.mOffset = positions * d.vPosition;
  return positions * (d.vPosition + d.mPosition);
}

}  // namespace

KernelPlan planWinogradConv(const ConvShape& s, int64_t tile, const Machine& machine) {
  const int64_t lanes = machine.lanes, positions = (tile + 2) * (tile + 2);
  WinogradDesc d{};
  d.blocks = ceilDiv(s.channels, lanes);
  d.vectors = ceilDiv(s.outputs, lanes);
  d.height = s.height;
  d.width = s.width;
  d.py = s.py;
  d.px = s.px;
  d.outHeight = s.outHeight;
  d.outWidth = s.outWidth;
  d.tilesDown = ceilDiv(s.outHeight, tile);
  d.tilesAcross = ceilDiv(s.outWidth, tile);
  d.tiles = s.images * d.tilesDown * d.tilesAcross;
  d.scratch = kScratch;
  const std::vector<FunctionParam> epilogue{{.kind = FunctionParam::Kind::Epilogue}};
  KernelPlan plan;

  constexpr int64_t kRuns = 4;       // fewer do not balance
  constexpr int64_t kManyRuns = 16;  // for as many threads, where tiles are enough for that
  constexpr int64_t kUnits = 32;
  constexpr int64_t kLargest = 32 << 20;  // bytes of scratch memory for all tiles at once
  const int64_t rows = machine.registers >= 32 ? 14 : 6;
  const int64_t tileBytes = positions * (d.blocks + d.vectors) * lanes * kBytes;
  // A filter that stays in the cache leaves less for V and M.
  const int64_t filterBytes = positions * s.channels * alignUp(s.outputs, 2 * lanes) * kBytes;
  const int64_t eighth = machine.l2 / 8, room = filterBytes <= 5 * eighth ? 7 * eighth - filterBytes : 5 * eighth;
  const int64_t fitting = room / (tileBytes * rows) * rows;
  const bool byRuns = d.tiles >= kRuns * rows && (fitting >= rows || d.tiles * tileBytes > kLargest);
  if (byRuns) {
    const int64_t most = std::max<int64_t>(d.tiles / kManyRuns / rows * rows, rows);
    d.unitElements = layOut(d, std::clamp(fitting >= rows ? fitting : 4 * rows, rows, most), positions, lanes);
    d.units = std::min(kUnits, ceilDiv(d.tiles, d.run));
    d.products = productsOf(d, s, positions, machine);
    planTiles(d.products, machine);
    d.products.tileGroups = d.products.panelGroups = 1;
    d.products.passBlocks = d.blocks;
    d.products.unitPartials = 0;
    plan.steps = {{.kernel = fmt::format("winograd{}_r{}_w{}", tile, rows, lanes),
                   .descriptor = descriptorBytes(d),
                   .units = d.units,
                   .functions = epilogue}};
    plan.scratchBytes = d.units * d.unitElements * kBytes;
  } else {
    int64_t elements = layOut(d, d.tiles, positions, lanes);
    TileDesc products = productsOf(d, s, positions, machine);
    products.x = {.operand = kScratch, .offset = d.vOffset};
    products.partial = {.operand = kScratch, .offset = elements};
    products.stored = 1;
    products.y = {.operand = kScratch, .offset = d.mOffset};
    products.yImage = d.mPosition;
    products.yVector = d.run * lanes;
    const KernelStep multiply = planTiles(products, machine);
    elements += partialElements(products);
    d.tileGroups = std::clamp<int64_t>(ceilDiv(kUnits, std::min(d.blocks, d.vectors)), 1, d.tiles);
    const std::vector<std::byte> bytes = descriptorBytes(d);
    plan.steps = {{.kernel = fmt::format("winograd{}_input_w{}", tile, lanes),
                   .descriptor = bytes,
                   .units = d.blocks * d.tileGroups},
                  multiply,
                  {.kernel = fmt::format("winograd{}_output_w{}", tile, lanes),
                   .descriptor = bytes,
                   .units = d.vectors * d.tileGroups,
                   .functions = epilogue}};
    plan.scratchBytes = elements * kBytes;
  }
  const int64_t dims[4] = {s.images, d.vectors, s.outHeight * s.outWidth, lanes};
  std::copy_n(dims, 4, plan.epilogueDims);
  plan.flops = 2. * static_cast<double>(s.images * s.outputs * s.outHeight * s.outWidth) *
               static_cast<double>(s.channels * s.kh * s.kw);
  return plan;
}

}  // namespace aglow::cpu
