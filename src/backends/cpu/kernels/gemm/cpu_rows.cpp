// Which kernels multiply matrices of f32 and of narrow elements.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "backends/cpu/kernels/gemm/byte_pack_desc.h"
#include "backends/cpu/kernels/gemm/matrix_desc.h"
#include "backends/cpu/kernels/gemm/matvec_desc.h"
#include "backends/cpu/kernels/gemm/outer_plan.h"
#include "backends/cpu/kernels/gemm/rows_desc.h"
#include "backends/cpu/kernels/gemm/tile_plan.h"
#include "backends/cpu/kernels/reasons.h"
#include "support/sizes.h"

namespace aglow::cpu {

namespace {

constexpr int64_t kBytes = sizeof(float);
// Axes of the epilogue's extents, [1, matrix, row, column].
constexpr int64_t kMatrixAxis = 1, kRowAxis = 2, kColumnAxis = 3;

struct Sizes {
  int64_t batches, m, k, n;
};

// Leading axes of the left operand count as rows.
Sizes packedSizes(const Problem& problem) {
  const Shape& a = problem.inType(0).shape();
  const int64_t k = a[a.rank() - 1];
  const int64_t n = problem.attrs.integer("n");
  return {.batches = 1, .m = problem.outType().elements() / n, .k = k, .n = n};
}

void setEpilogueDims(KernelPlan& plan, const Sizes& s) {
  const int64_t dims[4] = {1, s.batches, s.m, s.n};
  std::copy_n(dims, 4, plan.epilogueDims);
  plan.flops = 2. * static_cast<double>(s.batches * s.m) * static_cast<double>(s.k) * static_cast<double>(s.n);
}

Decision packedFits(const Problem& problem, const Machine& machine) {
  const int64_t panel = problem.inType(1).dim(2);
  if (panel != 2 * machine.lanes)
    return Decision::no(fmt::format("needs panels of {} columns, has {}", 2 * machine.lanes, panel));
  return Decision::yes();
}

Decision narrowFits(const Problem& problem, const Machine& machine) {
  if (Decision no = multipliesPairs(problem.inType(0).kind(), machine); !no) return no;
  return packedFits(problem, machine);
}

Decision fewRows(const Problem& problem, const Machine& machine) {
  if (Decision no = packedFits(problem, machine); !no) return no;
  const int64_t m = packedSizes(problem).m;
  if (m > kMatVecRows) return Decision::no(fmt::format("needs at most {} rows, has {}", kMatVecRows, m));
  return Decision::yes();
}

KernelPlan planMatVec(const Problem& problem, const Machine& machine) {
  const Sizes s = packedSizes(problem);
  const int64_t lanes = machine.lanes;
  // Floats: far enough for memory, near enough to stay in the first-level cache. A small matrix stays in a cache from
  // run to run, from which the processor itself fetches faster than it can be asked to.
  constexpr int64_t kAhead = 1024, kSmall = 4;
  const bool small = s.k * s.n * static_cast<int64_t>(sizeof(float)) <= kSmall * machine.l2;
  const MatVecDesc desc{.depth = s.k,
                        .columns = s.n,
                        .vectors = ceilDiv(s.n, lanes),
                        .panels = ceilDiv(s.n, 2 * lanes),
                        .rows = s.m,
                        .span = spanDepth(s.k),
                        .ahead = small ? 0 : kAhead};
  KernelPlan plan;
  plan.steps = {{.kernel = fmt::format("matvec_m{}_w{}", s.m, lanes),
                 .descriptor = descriptorBytes(desc),
                 .units = ceilDiv(desc.panels, matVecPanels(s.m)),
                 .functions = {{.kind = FunctionParam::Kind::Epilogue}}}};
  setEpilogueDims(plan, s);
  return plan;
}

BlockDesc blockDesc(const Problem& problem, const Machine& machine) {
  constexpr int64_t kAhead = 1024, kByte = 8;  // words; bits
  const Sizes s = packedSizes(problem);
  const int64_t lanes = machine.lanes, blocks = problem.inType(2).dim(1);
  return {.depth = s.k,
          .columns = s.n,
          .vectors = ceilDiv(s.n, lanes),
          .panels = ceilDiv(s.n, 2 * lanes),
          .rows = s.m,
          .words = problem.inType(1).dim(1),
          .groups = kByte / problem.attrs.integer("bits"),
          .block = problem.attrs.integer("block"),
          .blocks = blocks,
          .share = 1,
          .scaleBlocks = blocks,
          .oneOffset = problem.inType(3).elements() == 1 ? 1 : 0,
          .ahead = kAhead,
          .unitPanels = matVecPanels(s.m)};
}

// What rows become comes first, then the products.
KernelPlan planBlocks(const Problem& problem, const Machine& machine, const BlockDesc& desc, std::string_view rows,
                      std::string_view products) {
  KernelPlan plan;
  plan.steps = {
      {.kernel = std::string(rows), .descriptor = descriptorBytes(desc), .units = desc.rows},
      {.kernel = fmt::format("{}_b{}_m{}_w{}", products, problem.attrs.integer("bits"), desc.rows, machine.lanes),
       .descriptor = descriptorBytes(desc),
       .units = ceilDiv(desc.panels, desc.unitPanels),
       .functions = {{.kind = FunctionParam::Kind::Epilogue}}}};
  setEpilogueDims(plan, packedSizes(problem));
  return plan;
}

KernelPlan planBlockMatVec(const Problem& problem, const Machine& machine) {
  const BlockDesc desc = blockDesc(problem, machine);
  KernelPlan plan = planBlocks(problem, machine, desc, "block_sums", "block_matvec");
  plan.scratchBytes = desc.rows * desc.blocks * kBytes;
  return plan;
}

// Blocks whose sums of bytes are exact: i32 hold the lower ones, shifted by a byte, of 256 levels of 8 bits. Longer
// blocks are cut evenly. 0 where that cannot be.
int64_t exactBlock(const BlockDesc& d) {
  constexpr int64_t kLongest = 256, kEight = 8;
  if (d.block <= kLongest) return d.block;
  if (d.blocks == 1) return kLongest;
  for (int64_t block = kLongest; block > 0; block -= kEight)
    if (d.block % block == 0) return block;
  return 0;
}

Decision bytesMultiply(const Problem& problem, const Machine& machine) {
  if (!machine.bytes) return Decision::no("needs a processor that multiplies groups of bytes");
  if (Decision no = fewRows(problem, machine); !no) return no;
  const BlockDesc desc = blockDesc(problem, machine);
  if (exactBlock(desc) == 0)
    return Decision::no(fmt::format("needs blocks that can be cut evenly, has {} rows in each", desc.block));
  return Decision::yes();
}

KernelPlan planLevelMatVec(const Problem& problem, const Machine& machine) {
  constexpr int64_t kParts = 3;
  BlockDesc desc = blockDesc(problem, machine);
  const int64_t block = exactBlock(desc);
  desc.share = ceilDiv(std::min(desc.block, desc.depth), block);
  desc.block = block;
  desc.blocks = ceilDiv(desc.depth, block);
  KernelPlan plan = planBlocks(problem, machine, desc, "level_bytes", "level_matvec");
  plan.steps.back().functions.push_back({.kind = FunctionParam::Kind::Dot});
  plan.scratchBytes = desc.rows * (desc.words * desc.groups * kParts + 2 * desc.blocks + 1) * kBytes;
  return plan;
}

// Rows a multiple of a page apart fall into the same few lines of the first-level cache, and a tile has more rows than
// those hold. Such a left operand is copied first, into scratch memory from `offset` on; gives the distance of its rows
// there, or nothing.
std::optional<int64_t> spreadRows(KernelPlan& plan, const Sizes& s, int64_t offset, const Machine& machine) {
  constexpr int64_t kPage = 1024, kLine = 16, kManyRows = 8, kManyColumns = 128, kUnits = 16;  // in elements
  if (s.k % kPage != 0 || s.m < kManyRows || s.n < kManyColumns) return std::nullopt;
  const SpreadDesc spread{.from = 1,
                          .to = 3,
                          .toOffset = offset,
                          .rows = s.batches * s.m,
                          .width = s.k,
                          .distance = s.k + kLine,
                          .unitRows = ceilDiv(s.batches * s.m, kUnits)};
  plan.steps.push_back({.kernel = fmt::format("spread_rows_w{}", machine.lanes),
                        .descriptor = descriptorBytes(spread),
                        .units = ceilDiv(spread.rows, spread.unitRows)});
  return spread.distance;
}

// The same for tiles; gives the elements it takes in scratch memory.
int64_t spreadRows(KernelPlan& plan, TileDesc& desc, const Sizes& s, int64_t offset, const Machine& machine) {
  const std::optional<int64_t> distance = spreadRows(plan, s, offset, machine);
  if (!distance) return 0;
  desc.x = {.operand = 3, .offset = offset};
  desc.xColumn = *distance;
  return s.batches * s.m * *distance;
}

KernelPlan planPacked(const Problem& problem, const Machine& machine) {
  const Sizes s = packedSizes(problem);
  TileDesc desc = matrixTiles(s.m, s.k, s.n, machine);
  KernelPlan plan;
  desc.partial.offset = spreadRows(plan, desc, s, 0, machine);
  const bool spread = !plan.steps.empty();
  std::optional<TileCut> cut;
  if (problem.wish.axis == kRowAxis) cut = {TileCut::Along::Positions, problem.wish.parts};
  if (problem.wish.axis == kColumnAxis) cut = {TileCut::Along::Panels, problem.wish.parts};
  plan.steps.push_back(planTiles(desc, machine, cut));
  if (cut && !spread) plan.cut = {{problem.wish.axis == kRowAxis ? 1 : 0, 0}};
  plan.scratchBytes = (desc.partial.offset + partialElements(desc)) * kBytes;
  setEpilogueDims(plan, s);
  return plan;
}

// Where rows are long enough, and whole steps of 64 bytes.
Decision matrixFits(const Problem& problem, const Machine& machine) {
  if (Decision no = hasMatrixRegisters(machine); !no) return no;
  if (Decision no = packedFits(problem, machine); !no) return no;
  const Sizes s = packedSizes(problem);
  if (s.m < kMatrixRows) return Decision::no(fmt::format("needs at least {} rows, has {}", kMatrixRows, s.m));
  const int64_t bytes = s.k * static_cast<int64_t>(elemBytes(problem.inType(0).kind()));
  if (bytes == 0 || bytes % kMatrixStep != 0)
    return Decision::no(fmt::format("needs rows of whole steps of {} bytes, has {}", kMatrixStep, bytes));
  return Decision::yes();
}

KernelPlan planMatrix(const Problem& problem, const Machine& machine) {
  constexpr int64_t kUnitFlops = 1 << 23, kPair = 32, kUnits = 64;
  const Sizes s = packedSizes(problem);
  const ElemKind kind = problem.inType(0).kind();
  const int64_t rowBytes = s.k * static_cast<int64_t>(elemBytes(kind));
  MatrixDesc desc{.rows = s.m,
                  .rowBytes = rowBytes,
                  .groups = rowBytes / kBytes,
                  .columns = s.n,
                  .vectors = ceilDiv(s.n, machine.lanes),
                  .panels = ceilDiv(s.n, 2 * machine.lanes),
                  .rowGroups = 1,
                  .panelGroups = 1,
                  .ahead = 1,
                  .positions = 0};
  KernelPlan plan;
  setEpilogueDims(plan, s);
  // What a unit reads of the left operand stays in the second-level cache for all its panels.
  const int64_t pairs = ceilDiv(s.m, kPair),
                wanted = std::clamp<int64_t>(static_cast<int64_t>(plan.flops) / kUnitFlops, 1, kUnits);
  desc.rowGroups = std::clamp<int64_t>(ceilDiv(s.m * rowBytes, machine.l2 / 2), 1, pairs);
  desc.panelGroups = std::clamp<int64_t>(ceilDiv(wanted, desc.rowGroups), 1, desc.panels);
  plan.steps = {{.kernel = "matrix_permission", .descriptor = descriptorBytes(desc)},
                {.kernel = kind == ElemKind::BFloat16 ? "matrix_halves_w16" : "matrix_bytes_w16",
                 .descriptor = descriptorBytes(desc),
                 .units = desc.rowGroups * desc.panelGroups,
                 .functions = {{.kind = FunctionParam::Kind::Epilogue}}}};
  return plan;
}

// Rows with whole groups of elements are read where they lie. Others are copied with bytes to spare between them, and
// so are those that fall into the same few lines of the cache.
KernelPlan planNarrow(const Problem& problem, const Machine& machine) {
  constexpr int64_t kUnits = 16, kPage = 4096, kLine = 64, kManyRows = 8, kManyColumns = 128;
  const Sizes s = packedSizes(problem);
  const ElemKind kind = problem.inType(0).kind();
  const int64_t together = elementsTogether(kind), groups = ceilDiv(s.k, together), rowBytes = s.k * elemBytes(kind);
  TileDesc desc = matrixTiles(s.m, groups, s.n, machine);
  KernelPlan plan;
  const bool collide = rowBytes % kPage == 0 && s.m >= kManyRows && s.n >= kManyColumns;
  if (s.k % together != 0 || collide) {
    const FillDesc fill{.rows = s.m,
                        .width = rowBytes,
                        .filled = groups * kBytes,
                        .distance = groups * kBytes + (collide ? kLine : 0),
                        .unitRows = ceilDiv(s.m, kUnits)};
    plan.steps.push_back(
        {.kernel = "fill_rows", .descriptor = descriptorBytes(fill), .units = ceilDiv(s.m, fill.unitRows)});
    desc.x = {.operand = 3, .offset = 0};
    desc.xColumn = fill.distance / kBytes;
    desc.partial.offset = s.m * desc.xColumn;
  }
  plan.steps.push_back(planTiles(desc, machine, tileElementOf(kind)));
  plan.scratchBytes = (desc.partial.offset + partialElements(desc)) * kBytes;
  setEpilogueDims(plan, s);
  return plan;
}

// The leading axes of a product, merged where both operands step through them evenly.
struct BatchAxis {
  int64_t extent, a, b;  // distances in matrices
};

std::vector<BatchAxis> batchAxes(const Problem& problem) {
  const auto leading = [](const Shape& shape) {
    return Shape(std::vector<int64_t>(shape.dims().begin(), shape.dims().end() - 2));
  };
  const Shape out = leading(problem.outType().shape());
  const std::vector<int64_t> a = broadcastStrides(leading(problem.inType(0).shape()), out);
  const std::vector<int64_t> b = broadcastStrides(leading(problem.inType(1).shape()), out);
  std::vector<BatchAxis> axes;
  for (int i = 0; i < out.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    const BatchAxis axis{out[i], a[at], b[at]};
    if (axis.extent == 1) continue;
    if (!axes.empty() && axes.back().a == axis.a * axis.extent && axes.back().b == axis.b * axis.extent)
      axes.back() = {axes.back().extent * axis.extent, axis.a, axis.b};
    else
      axes.push_back(axis);
  }
  return axes;
}

Decision fewAxes(const Problem& problem) {
  constexpr size_t kMostAxes = 3;
  if (const size_t axes = batchAxes(problem).size(); axes > kMostAxes)
    return Decision::no(
        fmt::format("needs at most {} leading axes that broadcast on their own, has {}", kMostAxes, axes));
  return Decision::yes();
}

Decision tilesMultiply(const Problem& problem, const Machine&) {
  if (Decision no = needsF32(problem); !no) return no;
  if (Decision no = needsElements({&problem.outType(), &problem.inType(0)}); !no) return no;
  for (const Type* type : {&problem.inType(0), &problem.inType(1)})
    if (type->rank() < 2) return Decision::no(fmt::format("needs two matrices, has the vector {}", type->text()));
  return fewAxes(problem);
}

// One right operand for all: the left ones are rows of one matrix.
void joinRows(std::vector<BatchAxis>& axes, Sizes& s) {
  if (axes.size() != 1 || axes[0].b != 0 || axes[0].a != 1) return;
  s.m *= axes[0].extent;
  axes.clear();
}

// Matrices of so many elements, as the images of tiles.
void setImages(TileDesc& desc, const std::vector<BatchAxis>& axes, Sizes& s, int64_t left, int64_t right) {
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t to = 3 - axes.size() + i;
    s.batches *= axes[i].extent;
    desc.images[to] = axes[i].extent;
    desc.xImage[to] = axes[i].a * left;
    desc.wImage[to] = axes[i].b * right;
  }
}

Decision bytesFit(const Problem& problem, const Machine&) {
  if (problem.inType(0).kind() != ElemKind::UInt8) return Decision::no("needs unsigned bytes on the left, has signed");
  return fewAxes(problem);
}

// The right operands are packed when they are known, with what offsets add to the sums of columns; rows of the left
// ones that are no whole words are copied.
KernelPlan planBytes(const Problem& problem, const Machine& machine) {
  constexpr int64_t kUnits = 16, kShift = 128;
  const Type &a = problem.inType(0), &b = problem.inType(1);
  const bool transposed = problem.attrs.flag("transposed"), isUnsignedB = b.kind() == ElemKind::UInt8;
  Sizes s{.batches = 1,
          .m = a.dim(a.rank() - 2),
          .k = a.dim(a.rank() - 1),
          .n = problem.outType().dim(problem.outType().rank() - 1)};
  std::vector<BatchAxis> axes = batchAxes(problem);
  joinRows(axes, s);
  const int64_t panel = 2 * machine.lanes, panels = ceilDiv(s.n, panel), groups = ceilDiv(s.k, kBytes);
  const int64_t aOffset = problem.attrs.integer("a_offset"),
                bOffset = problem.attrs.integer("b_offset") - (isUnsignedB ? kShift : 0);
  TileDesc desc = matrixTiles(s.m, groups, s.n, machine);
  const auto matricesOf = [](const Type& type) {
    int64_t count = 1;
    for (int i = 0; i + 2 < type.rank(); ++i) count *= type.dim(i);
    return count;
  };
  const int64_t rows = matricesOf(a) * a.dim(a.rank() - 2), right = panels * (groups + 1) * panel;
  setImages(desc, axes, s, s.m * groups, right);
  const int64_t unitRows = rows > s.m ? s.m : ceilDiv(rows, kUnits);  // no unit belongs to two matrices

  KernelPlan plan;
  int64_t used = 0;  // words of scratch memory
  if (s.k % kBytes != 0) {
    const FillDesc fill{
        .rows = rows, .width = s.k, .filled = groups * kBytes, .distance = groups * kBytes, .unitRows = unitRows};
    plan.steps.push_back(
        {.kernel = "fill_rows", .descriptor = descriptorBytes(fill), .units = ceilDiv(rows, unitRows)});
    desc.x = {.operand = 3, .offset = 0};
    used += rows * groups;
  }
  const PackBytesDesc pack{.depth = s.k,
                           .columns = s.n,
                           .panels = panels,
                           .transposed = transposed ? 1 : 0,
                           .flip = isUnsignedB ? kFlipBytes : 0,
                           .aOffset = aOffset,
                           .bOffset = bOffset,
                           .to = used};
  plan.steps.push_back({.kernel = fmt::format("pack_bytes_w{}", machine.lanes),
                        .descriptor = descriptorBytes(pack),
                        .units = matricesOf(b) * panels});
  desc.w = {.operand = 3, .offset = used};
  desc.wPanel = (groups + 1) * panel;
  desc.starts = 1;
  used += matricesOf(b) * right;
  if (bOffset != 0 && s.k > 0) {
    const RowStartsDesc starts{.rows = rows, .depth = s.k, .unitRows = unitRows, .factor = -bOffset, .to = used};
    plan.steps.push_back({.kernel = fmt::format("row_starts_w{}", machine.lanes),
                          .descriptor = descriptorBytes(starts),
                          .units = ceilDiv(rows, unitRows)});
    desc.hasRowStarts = 1;
    desc.rowStarts = {.operand = 3, .offset = used};
    used += rows;
  }
  desc.partial.offset = used;
  plan.steps.push_back(planTiles(desc, machine, TileElement::FourBytes));
  plan.scratchBytes = (used + partialElements(desc)) * kBytes;
  setEpilogueDims(plan, s);
  if (problem.wish.axis == kMatrixAxis && s.batches % problem.wish.parts == 0 && axes.size() == 1 && axes[0].a == 1 &&
      axes[0].b == 1)
    plan.cut = {{1, 1}};
  return plan;
}

KernelPlan planMatMul(const Problem& problem, const Machine& machine) {
  const Type &a = problem.inType(0), &b = problem.inType(1);
  std::vector<BatchAxis> axes = batchAxes(problem);
  Sizes s{.batches = 1, .m = a.dim(a.rank() - 2), .k = a.dim(a.rank() - 1), .n = b.dim(b.rank() - 1)};
  joinRows(axes, s);
  const int64_t lanes = machine.lanes, panel = 2 * lanes, panels = ceilDiv(s.n, panel);
  TileDesc desc = matrixTiles(s.m, s.k, s.n, machine);

  // Whole vectors may be read in place, which pays where few rows would share the copy, or rows lie close together.
  constexpr int64_t kFewRows = 28, kNear = 512;
  const bool inPlace = s.n % lanes == 0 && (s.m <= kFewRows || s.n * kBytes <= kNear);
  KernelPlan plan;
  int64_t matrix = s.k * s.n, packed = 0;
  if (inPlace) {
    desc.wPanel = panel;
    desc.wRow = s.n;
  } else {
    const int64_t matrices = b.elements() / std::max<int64_t>(matrix, 1);
    matrix = panels * s.k * panel;
    packed = matrices * matrix;
    const PackDesc pack{.from = 2, .to = 3, .toOffset = 0, .depth = s.k, .columns = s.n, .panels = panels};
    plan.steps.push_back({.kernel = fmt::format("pack_panels_w{}", lanes),
                          .descriptor = descriptorBytes(pack),
                          .units = matrices * panels});
    desc.w = {.operand = 3, .offset = 0};
  }
  desc.partial.offset = packed + (axes.empty() ? spreadRows(plan, desc, s, packed, machine) : 0);
  setImages(desc, axes, s, s.m * s.k, matrix);
  plan.steps.push_back(planTiles(desc, machine));
  plan.scratchBytes = (desc.partial.offset + partialElements(desc)) * kBytes;
  setEpilogueDims(plan, s);
  // Matrices are on their own where each has a right operand.
  if (problem.wish.axis == kMatrixAxis && s.batches % problem.wish.parts == 0 && axes.size() == 1 && axes[0].b == 1)
    plan.cut = {{axes[0].a == 1 ? 1 : 0, 1}};
  return plan;
}

// Panels of one column are the rows of the transposed matrix.
Decision rowsByRows(const Problem& problem, const Machine&) {
  if (const int64_t panel = problem.inType(1).dim(2); panel != 1)
    return Decision::no(fmt::format("needs panels of 1 column, has {}", panel));
  return Decision::yes();
}

KernelPlan planRows(const Problem& problem, const Machine& machine) {
  constexpr int64_t kUnits = 64;
  constexpr double kUnitFlops = 1e6;  // worth the handing over to a thread
  const Sizes s = packedSizes(problem);
  const int64_t lanes = machine.lanes, tiles = ceilDiv(s.m, highestRows(lanes)), high = ceilDiv(s.m, tiles);
  KernelPlan plan;
  setEpilogueDims(plan, s);
  const std::optional<int64_t> distance = spreadRows(plan, s, 0, machine);
  if (distance) plan.scratchBytes = s.m * *distance * kBytes;
  // What a unit reads of the left operand stays in the second-level cache for all its columns.
  const int64_t blocks = std::clamp<int64_t>(ceilDiv(s.m * s.k * kBytes, machine.l2 / 2), 1, tiles);
  const int64_t wanted = std::clamp<int64_t>(static_cast<int64_t>(plan.flops / kUnitFlops), 1, kUnits);
  const RowsDesc desc{.a = distance ? 3 : 1,
                      .aRow = distance.value_or(s.k),
                      .depth = s.k,
                      .columns = s.n,
                      .span = alignUp(spanDepth(s.k), lanes),
                      .tiles = tiles,
                      .tall = s.m - tiles * (high - 1),
                      .unitTiles = ceilDiv(tiles, blocks),
                      .unitColumns = alignUp(ceilDiv(s.n, ceilDiv(wanted, blocks)), lanes)};
  plan.steps.push_back({.kernel = fmt::format("rows_r{}_w{}", high, lanes),
                        .descriptor = descriptorBytes(desc),
                        .units = ceilDiv(tiles, desc.unitTiles) * ceilDiv(s.n, desc.unitColumns),
                        .functions = {{.kind = FunctionParam::Kind::Epilogue}}});
  return plan;
}

// One column: rows of the left operand by a vector, which all matrices share or have one each.
Decision dotsMultiply(const Problem& problem, const Machine&) {
  if (Decision no = needsF32(problem); !no) return no;
  const Type &a = problem.inType(0), &b = problem.inType(1);
  if (Decision no = needsElements({&problem.outType(), &a}); !no) return no;
  if (a.rank() < 2) return Decision::no(fmt::format("needs a matrix on the left, has the vector {}", a.text()));
  const int64_t depth = a.dim(a.rank() - 1);
  if (b.rank() > 1 && b.dim(b.rank() - 1) != 1)
    return Decision::no(fmt::format("needs one column on the right, has {}", b.dim(b.rank() - 1)));
  const bool paired =
      b.rank() > 1 && batchAxes(problem).size() == 1 && batchAxes(problem)[0].a == 1 && batchAxes(problem)[0].b == 1;
  if (b.elements() != depth && !paired)
    return Decision::no(fmt::format("needs one vector for all matrices or each, has {} by {}", a.text(), b.text()));
  if (a.elements() / depth != problem.outType().elements())
    return Decision::no(fmt::format("needs a result for every row, has {} of {}", problem.outType().text(), a.text()));
  return Decision::yes();
}

KernelPlan planDots(const Problem& problem, const Machine& machine) {
  constexpr int64_t kShort = 512, kUnit = 1 << 16;  // sums of a lane; products
  const Type &a = problem.inType(0), &b = problem.inType(1);
  const int64_t depth = a.dim(a.rank() - 1), rows = problem.outType().elements(), lanes = machine.lanes;
  const DotDesc desc{.rows = rows,
                     .depth = depth,
                     .perVector = rows / (b.elements() / depth),
                     .span = kShort * lanes,
                     .unitRows = alignUp(ceilDiv(kUnit, depth), lanes)};
  KernelPlan plan;
  plan.steps = {{.kernel = fmt::format("dot_w{}", lanes),
                 .descriptor = descriptorBytes(desc),
                 .units = ceilDiv(rows, desc.unitRows),
                 .functions = {{.kind = FunctionParam::Kind::Epilogue}}}};
  const int64_t dims[4] = {1, 1, 1, rows};
  std::copy_n(dims, 4, plan.epilogueDims);
  plan.flops = 2. * static_cast<double>(rows) * static_cast<double>(depth);
  return plan;
}

constexpr KernelRow kRows[] = {
    {Op::PackedMatMul, "rows", rowsByRows, unlessEmpty<planRows>},
    {Op::PackedMatMul, "matvec", fewRows, unlessEmpty<planMatVec>},
    {Op::PackedMatMul, "tiles", packedFits, unlessEmpty<planPacked>},
    {Op::BlockMatMul, "levels", bytesMultiply, unlessEmpty<planLevelMatVec>},
    {Op::BlockMatMul, "matvec", fewRows, unlessEmpty<planBlockMatVec>},
    {Op::NarrowMatMul, "matrix", matrixFits, unlessEmpty<planMatrix>},
    {Op::NarrowMatMul, "tiles", narrowFits, unlessEmpty<planNarrow>},
    {Op::TransposedMatMul, "outer", outerProductFits, planOuterProduct},
    {Op::TapProducts, "outer", tapProductsFit, planTapProducts},
    {Op::ByteMatMul, "tiles", bytesFit, unlessEmpty<planBytes>},
    {Op::MatMul, "dots", dotsMultiply, planDots},
    {Op::MatMul, "tiles", tilesMultiply, planMatMul},
};

}  // namespace

std::span<const KernelRow> gemmRows() { return kRows; }

}  // namespace aglow::cpu
