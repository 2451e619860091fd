#include "backends/cpu/kernels/gemm/outer_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/kernels/gemm/matvec_desc.h"
#include "backends/cpu/kernels/gemm/outer_desc.h"
#include "backends/cpu/kernels/reasons.h"
#include "ops/window.h"
#include "support/sizes.h"

namespace aglow::cpu {

namespace {

constexpr int64_t kBytes = sizeof(float);

// Channels of x that a tile has; blocks have whole numbers of them.
int64_t tileHeight(const Machine& machine) { return std::max<int64_t>(machine.lanes / 2, 4); }

// Cuts results into tiles and units, and what is summed over into parts.
KernelPlan planOuter(OuterDesc& d, const Machine& machine) {
  constexpr int64_t kUnits = 32, kTileGroups = 8, kUnitFlops = 1 << 20;
  const int64_t height = tileHeight(machine), results = d.kh * d.kw * d.channels;
  d.mixed = d.padded == 0 && d.channels < height ? 1 : 0;
  d.tiles = d.mixed == 1 ? ceilDiv(results, height) : d.kh * d.kw * ceilDiv(d.channels, height);
  d.panels = ceilDiv(d.vectors, 2);
  // A part of g stays in half of the first-level cache for all tiles.
  const int64_t places = std::max<int64_t>(machine.l1 / 2 / (2 * machine.lanes * kBytes), 16);
  d.partCols = std::min(d.columns, places);
  d.partRows = std::clamp<int64_t>(places / d.partCols, 1, d.images * d.rows);
  KernelPlan plan;
  plan.flops = 2. * static_cast<double>(d.batches * results) * static_cast<double>(d.vectors * machine.lanes) *
               static_cast<double>(d.images * d.rows * d.columns);
  const int64_t wanted = std::clamp<int64_t>(static_cast<int64_t>(plan.flops) / kUnitFlops, 1, kUnits);
  // Each group of tiles reads all of g, and each group of panels all of x.
  d.tileGroups = std::clamp<int64_t>(ceilDiv(wanted, d.batches), 1, std::min(kTileGroups, d.tiles));
  d.panelGroups = std::clamp<int64_t>(ceilDiv(wanted, d.batches * d.tileGroups), 1, d.panels);
  plan.steps = {{.kernel = fmt::format("outer_w{}", machine.lanes),
                 .descriptor = descriptorBytes(d),
                 .units = d.batches * d.tileGroups * d.panelGroups}};
  return plan;
}

// A matrix of the problem in panels of two vectors, in scratch memory from `offset` on: rows far apart fall into the
// same few lines of the cache.
KernelStep packed(int64_t operand, int64_t matrices, int64_t depth, int64_t columns, int64_t offset,
                  const Machine& machine) {
  const PackDesc pack{.from = operand,
                      .to = 3,
                      .toOffset = offset,
                      .depth = depth,
                      .columns = columns,
                      .panels = ceilDiv(columns, 2 * machine.lanes)};
  return {.kernel = fmt::format("pack_panels_w{}", machine.lanes),
          .descriptor = descriptorBytes(pack),
          .units = matrices * pack.panels};
}

}  // namespace

Decision outerProductFits(const Problem& problem, const Machine& machine) {
  const Type& b = problem.inType(1);
  if (Decision no = needsElements({&problem.inType(0), &b}); !no) return no;
  if (const int64_t n = b.dim(b.rank() - 1); n % machine.lanes != 0)
    return Decision::no(fmt::format("needs whole vectors of {} columns, has {}", machine.lanes, n));
  return Decision::yes();
}

// Rows of both matrices are the places of one row.
KernelPlan planOuterProduct(const Problem& problem, const Machine& machine) {
  const Type &a = problem.inType(0), &b = problem.inType(1);
  const int64_t k = a.dim(a.rank() - 2), m = a.dim(a.rank() - 1), n = b.dim(b.rank() - 1);
  OuterDesc d{};
  d.batches = a.elements() / (k * m);
  d.xBatch = k * m;
  d.gBatch = k * n;
  d.yBatch = m * n;
  d.images = d.rows = 1;
  d.columns = d.width = k;
  d.xColumn = m;
  d.xChannel = 1;
  d.gColumn = n;
  d.gVector = machine.lanes;
  d.yPanel = 2 * machine.lanes;
  d.yRow = n;
  d.channels = d.block = m;
  d.height = d.kh = d.kw = d.sy = d.sx = d.dy = d.dx = 1;
  d.vectors = n / machine.lanes;
  d.x = 1;
  d.g = 2;
  d.gPanel = 2 * machine.lanes;
  // Whoever is read often is copied first.
  constexpr int64_t kManyRows = 64, kNear = 512;
  const int64_t panel = 2 * machine.lanes;
  std::vector<KernelStep> copies;
  int64_t scratch = 0;
  if (k >= kManyRows && m * kBytes > kNear && n > 2 * panel) {
    copies.push_back(packed(1, d.batches, k, m, scratch, machine));
    d.x = 3;
    d.block = d.xColumn = panel;
    d.xBlock = k * panel;
    d.xBatch = alignUp(m, panel) * k;
    d.padded = 1;
    scratch += d.batches * d.xBatch;
  }
  if (k >= kManyRows && n * kBytes > kNear && m > 2 * tileHeight(machine)) {
    copies.push_back(packed(2, d.batches, k, n, scratch, machine));
    d.g = 3;
    d.gColumn = panel;
    d.gPanel = k * panel;
    d.gBatch = alignUp(n, panel) * k;
    d.gOffset = scratch;
    scratch += d.batches * d.gBatch;
  }
  KernelPlan plan = planOuter(d, machine);
  plan.steps.insert(plan.steps.begin(), copies.begin(), copies.end());
  plan.scratchBytes = scratch * kBytes;
  return plan;
}

Decision tapProductsFit(const Problem& problem, const Machine& machine) {
  const Type& g = problem.inType(1);
  if (Decision no = needsElements({&problem.inType(0), &g, &problem.outType()}); !no) return no;
  if (g.dim(4) != machine.lanes)
    return Decision::no(fmt::format("needs blocks of {} channels, has {}", machine.lanes, g.dim(4)));
  return Decision::yes();
}

KernelPlan planTapProducts(const Problem& problem, const Machine& machine) {
  const Type &x = problem.inType(0), &g = problem.inType(1);
  const Result<Window> window = windowOf(problem.attrs, problem.attrs.ints("kernel"));
  AGLOW_CHECK(window.ok(), "a window that is not valid");
  const bool planar = x.rank() == 4;
  const int64_t lanes = machine.lanes, plane = x.dim(2) * x.dim(3);
  OuterDesc d{};
  d.batches = 1;
  d.images = g.dim(0);
  d.rows = g.dim(2);
  d.columns = g.dim(3);
  d.height = x.dim(2);
  d.width = x.dim(3);
  d.channels = problem.attrs.integer("channels");
  d.padded = planar ? 0 : 1;
  d.block = planar ? d.channels : lanes;
  d.xColumn = planar ? 1 : lanes;
  d.xRow = d.width * d.xColumn;
  d.xChannel = planar ? plane : 1;
  d.xBlock = plane * lanes;
  d.xImage = x.elements() / x.dim(0);
  d.gColumn = lanes;
  d.gRow = d.columns * lanes;
  d.gVector = d.rows * d.gRow;
  d.gImage = g.elements() / g.dim(0);
  d.kh = window->kernel[0], d.kw = window->kernel[1];
  d.sy = window->strides[0], d.sx = window->strides[1];
  d.py = window->before[0], d.px = window->before[1];
  d.dy = window->dilations[0], d.dx = window->dilations[1];
  d.vectors = g.dim(1);
  d.filled = 1;
  d.x = 1;
  d.g = 2;
  d.gPanel = 2 * d.gVector;
  d.yRow = 2 * lanes;
  d.yPanel = d.kh * d.kw * d.channels * d.yRow;
  // Without a neighbourhood all places of an image are one row.
  const bool pointwise = d.kh == 1 && d.kw == 1 && d.sy == 1 && d.sx == 1 && d.py == 0 && d.px == 0;
  if (pointwise && d.rows == d.height && d.columns == d.width) {
    d.columns = d.width = plane;
    d.rows = d.height = 1;
  }
  return planOuter(d, machine);
}

}  // namespace aglow::cpu
