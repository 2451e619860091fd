// Plans of convolutions.
#include "backends/cpu/kernels/conv/conv_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/kernels/conv/plane_desc.h"
#include "backends/cpu/kernels/gemm/matrix_desc.h"
#include "backends/cpu/kernels/gemm/tile_plan.h"
#include "support/sizes.h"

namespace aglow::cpu {

namespace {

// Axes of the epilogue's extents, [image, block of channels, position, lane].
constexpr int64_t kChannels = 1, kPositions = 2;

// Whether even parts of the positions have hardly more tiles together than all positions as one row.
bool tilesStayHigh(int64_t positions, int64_t parts, const Machine& machine) {
  const int64_t highest = highestTile(machine), tiles = parts * ceilDiv(positions / parts, highest);
  return positions % parts == 0 && 12 * tiles <= 13 * ceilDiv(positions, highest);
}

bool isPointwise(const ConvShape& s) {
  return s.kh == 1 && s.kw == 1 && s.sy == 1 && s.sx == 1 && s.py == 0 && s.px == 0 && s.outHeight == s.height &&
         s.outWidth == s.width;
}

// A convolution as the register tiles see it, with elements of `column` to a position in the input.
TileDesc convTiles(const ConvShape& s, int64_t column, const Machine& machine, const CutWish& wish) {
  const int64_t lanes = machine.lanes, panel = 2 * lanes, channels = s.channels / s.group;
  const int64_t plane = s.height * s.width * column;
  TileDesc d{};
  d.x = {.operand = 1, .offset = 0};
  d.w = {.operand = 2, .offset = 0};
  d.partial = {.operand = 3, .offset = 0};
  d.images[0] = d.images[1] = 1;
  d.images[2] = s.images;
  d.xImage[2] = ceilDiv(s.channels, column) * plane;
  d.channels = channels;
  d.block = s.planar ? std::max<int64_t>(s.channels, 1) : column;
  d.xBlock = plane;
  d.xRow = s.width * column;
  d.xColumn = column;
  d.xChannel = s.planar ? plane : 1;
  d.xGroup = ceilDiv(channels, column) * plane;
  d.wPanel = s.kh * s.kw * channels * panel;
  d.wRow = panel;
  d.height = s.height;
  d.width = s.width;
  d.kh = s.kh, d.kw = s.kw, d.sy = s.sy, d.sx = s.sx, d.py = s.py, d.px = s.px, d.dy = s.dy, d.dx = s.dx;
  d.outHeight = s.outHeight;
  d.outWidth = s.outWidth;
  d.panels = ceilDiv(s.outputs, panel);
  d.panelsPerGroup = d.panels / s.group;
  d.vectors = ceilDiv(s.outputs, lanes);
  d.columns = d.vectors * lanes;
  // Without a neighbourhood all positions of an image are one row, or one for each part.
  if (isPointwise(s)) {
    const int64_t positions = s.height * s.width;
    d.height = d.outHeight = wish.axis == kPositions && tilesStayHigh(positions, wish.parts, machine) ? wish.parts : 1;
    d.width = d.outWidth = positions / d.height;
    d.xRow = d.width * column;
  }
  return d;
}

KernelPlan planConvTiles(const ConvShape& s, TileDesc& d, TileElement element, const Machine& machine,
                         const CutWish& wish) {
  KernelPlan plan;
  std::optional<TileCut> cut;
  if (wish.axis == kChannels) cut = {TileCut::Along::Panels, wish.parts};
  if (wish.axis == kPositions) cut = {TileCut::Along::Positions, wish.parts};
  plan.steps.push_back(planTiles(d, machine, cut, element));
  // Without a neighbourhood, a part of the positions reads no others.
  const bool own = wish.axis == kPositions && isPointwise(s) && !s.planar && s.group == 1;
  if (cut) plan.cut = {{own ? ceilDiv(s.channels, d.xColumn) : 0, 0}};
  plan.scratchBytes = partialElements(d) * static_cast<int64_t>(sizeof(float));
  const int64_t dims[4] = {s.images, d.vectors, s.outHeight * s.outWidth, machine.lanes};
  std::copy_n(dims, 4, plan.epilogueDims);
  const double products = static_cast<double>(s.channels / s.group * s.kh * s.kw);
  plan.flops = 2. * static_cast<double>(s.images * s.outputs * s.outHeight * s.outWidth) * products;
  return plan;
}

}  // namespace

KernelPlan planBlockedConv(const ConvShape& s, const Machine& machine, const CutWish& wish) {
  // The channels of a planar image are one block, each a plane away from the next.
  TileDesc d = convTiles(s, s.planar ? 1 : machine.lanes, machine, wish);
  return planConvTiles(s, d, TileElement::Float, machine, wish);
}

KernelPlan planNarrowConv(const ConvShape& shape, ElemKind kind, int64_t lanes, int64_t outside, const Machine& machine,
                          const CutWish& wish) {
  constexpr int64_t kEach = 0x01010101;
  const int64_t together = elementsTogether(kind);
  ConvShape groups = shape;
  groups.channels = shape.channels / together;
  TileDesc d = convTiles(groups, lanes / together, machine, wish);
  d.outside = outside * kEach;
  d.reachesOut = shape.py > 0 || shape.bottom > 0 ? 1 : 0;
  KernelPlan plan = planConvTiles(groups, d, tileElementOf(kind), machine, wish);
  plan.flops *= static_cast<double>(together);
  return plan;
}

KernelPlan planWindowRows(const ConvShape& s, ElemKind kind, int64_t outside, const Machine& machine) {
  constexpr int64_t kPair = 32, kUnitFlops = 1 << 21, kUnits = 64, kGroup = 4, kCollide = 1024;  // rows, bytes
  const auto bytes = static_cast<int64_t>(elemBytes(kind));
  const int64_t lanes = machine.lanes, positions = s.outHeight * s.outWidth, rows = s.images * positions;
  const int64_t depth = s.kh * s.kw * s.channels * bytes, whole = alignUp(depth, kMatrixStep);
  // Rows that far apart fall into the same few lines of the first-level cache.
  const int64_t rowBytes = whole % kCollide == 0 ? whole + kMatrixStep : whole;
  // What is copied is read again from the second-level cache.
  const int64_t most = machine.l2 / 2, pairBytes = kPair * rowBytes;
  const int64_t stretch = std::min(std::max<int64_t>(most / pairBytes, 1) * kPair, rows);
  const int64_t panels = ceilDiv(s.outputs, 2 * lanes), pairs = ceilDiv(stretch, kPair);
  const int64_t wanted = std::clamp<int64_t>(2 * stretch * depth / bytes * s.outputs / kUnitFlops, 1, kUnits);
  // Weights that stay in the cache are read again for each group of rows.
  const bool stay = panels * 2 * lanes * depth <= most;
  const int64_t rowGroups = stay ? std::min(wanted, pairs) : 1;
  const int64_t row = s.width * lanes * bytes, block = s.height * row;
  const WindowRowsDesc desc{.product = {.rows = rows,
                                        .rowBytes = rowBytes,
                                        .groups = depth / kGroup,
                                        .columns = s.outputs,
                                        .vectors = ceilDiv(s.outputs, lanes),
                                        .panels = panels,
                                        .rowGroups = rowGroups,
                                        .panelGroups = std::clamp<int64_t>(ceilDiv(wanted, rowGroups), 1, panels),
                                        .ahead = stay ? 0 : 1,
                                        .positions = positions},
                            .stretch = stretch,
                            .pointwise = isPointwise(s) ? 1 : 0,
                            .channelBytes = s.channels * bytes,
                            .blockBytes = lanes * bytes,
                            .xImage = ceilDiv(s.channels, lanes) * block,
                            .xBlock = block,
                            .xRow = row,
                            .height = s.height,
                            .width = s.width,
                            .outWidth = s.outWidth,
                            .kh = s.kh,
                            .kw = s.kw,
                            .sy = s.sy,
                            .sx = s.sx,
                            .py = s.py,
                            .px = s.px,
                            .dy = s.dy,
                            .dx = s.dx,
                            .outside = outside};
  KernelPlan plan;
  plan.steps = {{.kernel = "matrix_permission", .descriptor = descriptorBytes(desc)},
                {.kernel = kind == ElemKind::BFloat16 ? "window_halves_w16" : "window_bytes_w16",
                 .descriptor = descriptorBytes(desc),
                 .units = desc.product.rowGroups * desc.product.panelGroups,
                 .rounds = 2 * ceilDiv(rows, stretch),
                 .functions = {{.kind = FunctionParam::Kind::Epilogue}}}};
  plan.scratchBytes = stretch * rowBytes;
  const int64_t dims[4] = {s.images, desc.product.vectors, positions, lanes};
  std::copy_n(dims, 4, plan.epilogueDims);
  plan.flops = 2. * static_cast<double>(rows * s.outputs) * static_cast<double>(depth / bytes);
  return plan;
}

KernelPlan planPlanes(std::string_view kernel, const ConvShape& s, const PlaneOptions& options, const Machine& machine,
                      const CutWish& wish) {
  // The columns under the taps of a row, the results and the weights should fit into the registers.
  const int64_t highest = machine.registers >= 32 ? 8 : 5;
  constexpr int64_t kUnits = 64, kUnitTaps = 1 << 13;  // taps of vectors worth the handing over to a thread
  const int64_t blocks = s.channels / machine.lanes, tiles = ceilDiv(s.outWidth, highest);
  const int64_t rows = ceilDiv(s.outWidth, tiles), planes = s.images * blocks;
  const int64_t lastInside = floorDiv(s.width - 1 + s.px - (s.kw - 1) * s.dx, s.sx);
  const int64_t planeTaps = s.outHeight * s.outWidth * s.kh * s.kw * s.members;
  const int64_t groups = std::min(ceilDiv(kUnits, planes), planeTaps / kUnitTaps);
  const PlaneDesc desc{.blocks = blocks,
                       .height = s.height,
                       .width = s.width,
                       .kh = s.kh,
                       .kw = s.kw,
                       .sy = s.sy,
                       .sx = s.sx,
                       .py = s.py,
                       .px = s.px,
                       .dy = s.dy,
                       .dx = s.dx,
                       .bottom = s.bottom,
                       .right = s.right,
                       .outHeight = s.outHeight,
                       .outWidth = s.outWidth,
                       .countPadding = options.countPadding ? 1 : 0,
                       .members = s.members,
                       .outside = options.outside,
                       .tiles = tiles,
                       .tall = s.outWidth - tiles * (rows - 1),
                       .leftOutside = std::min(ceilDiv(s.px, s.sx), rows),
                       .rightOutside = std::clamp<int64_t>(s.outWidth - 1 - lastInside, 0, rows),
                       .tileGroups = std::clamp<int64_t>(groups, 1, s.outHeight * tiles)};
  KernelPlan plan;
  plan.steps = {{.kernel = fmt::format("{}_r{}_w{}", kernel, rows, machine.lanes),
                 .descriptor = descriptorBytes(desc),
                 .units = planes * desc.tileGroups,
                 .functions = {{.kind = FunctionParam::Kind::Epilogue}}}};
  if (options.bytes) plan.steps.front().functions.push_back({.kind = FunctionParam::Kind::Dot});
  const int64_t dims[4] = {s.images, blocks, s.outHeight * s.outWidth, machine.lanes};
  std::copy_n(dims, 4, plan.epilogueDims);
  plan.flops = 2. * static_cast<double>(planes * machine.lanes) * static_cast<double>(planeTaps);
  // By rows, what their neighbours read as well would not stay in the first-level cache.
  if (wish.axis == kChannels && blocks % wish.parts == 0) plan.cut = {{1, 0}};
  return plan;
}

}  // namespace aglow::cpu
