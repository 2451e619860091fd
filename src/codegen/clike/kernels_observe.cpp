// What is observed: histograms, and moments as reductions.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/clike/reductions.h"
#include "codegen/nest/combination.h"
#include "ops/all_ops.h"
#include "ops/observed.h"

namespace aglow::codegen {

namespace {

ReductionSizes momentSizes(const ObservedForm& form, int64_t channels) {
  return {.results = channels,
          .points = form.outer * form.rows,
          .beside = form.lanes > 1 ? std::min(form.lanes, std::max<int64_t>(channels, 1)) : 1,
          .sums = 4};
}

// The ends of each channel, and the sums that its mean and its mean of squares come from.
std::vector<Launch> momentLaunches(const KernelWriter& writer, const ObservedForm& form) {
  const ElemKind f64 = ElemKind::Float64;
  const auto wide = [](double number) { return numberText(ElemKind::Float64, std::bit_cast<uint64_t>(number)); };
  const int64_t channels = writer.out(1).dim(1);
  Reduction moments{.sizes = momentSizes(form, channels)};
  for (const char* how : {"min", "max", "sum", "sum"}) moments.sums.push_back(nest::combinationOf(how, f64));
  moments.operands = [](KernelWriter& one) {
    one.input(1, "known");
    one.input(2, "x");
    one.result(1, "rows");
  };
  moments.each = fill(
      R"(const float value = x[((at / $rows * $groups + row / $lanes) * $rows + at % $rows) * $lanes + row % $lanes];
if (value - value == 0) {
  const f64 wide = f64_of_f32(value);
  r0 = lt_f64(wide, r0) ? wide : r0;
  r1 = lt_f64(r1, wide) ? wide : r1;
  r2 = add_f64(r2, wide);
  r3 = add_f64(r3, mul_f64(wide, wide));
}
)",
      {{"groups", form.groups}, {"rows", std::max<int64_t>(form.rows, 1)}, {"lanes", form.lanes}});
  moments.finish = [&](KernelWriter&) {
    return fill(R"(const f64 low = load_f64(known[row]), high = load_f64(known[$n + row]);
rows[row] = store_f64(lt_f64(r0, low) ? r0 : low);
rows[$n + row] = store_f64(lt_f64(high, r1) ? r1 : high);
for (int32_t i = 0; i < 2; ++i) {
  const f64 mean = div_f64(i == 0 ? r2 : r3, $each), steps = mul_f64(mean, $finer);
  const f64 grid = lt_f64(abs_f64(steps), $most) ? mul_f64(round_f64(steps), $coarser) : mean;
  rows[(2 + i) * $n + row] = store_f64(add_f64(load_f64(known[(2 + i) * $n + row]), grid));
}
)",
                {{"n", channels},
                 {"finer", wide(0x1p30)},
                 {"coarser", wide(0x1p-30)},
                 {"most", wide(0x1p51)},
                 {"each", wide(static_cast<double>(std::max<int64_t>(form.outer * form.rows, 1)))}});
  };
  return reductionLaunches(writer, moments);
}

}  // namespace

int64_t observeScratch(const Program& program, const Instr& anchor, const DeviceShape& shape) {
  const auto typeOf = [&](RegionId id) -> const Type& { return program[id].type; };
  const ObservedForm form = observedForm(anchor.attrs, typeOf(anchor.inputs()[2].region).shape());
  return reductionScratch(momentSizes(form, typeOf(anchor.results()[1].region).dim(1)), shape);
}

// Counts of bins with atomic additions, low words with a carry; then each channel by itself.
std::vector<Launch> observeLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  const HistogramBins bins = HistogramBins::of(instr.attrs.integer("step_bits"));
  std::vector<Launch> launches;
  KernelWriter first(program, instr, shape);
  const ObservedForm form = observedForm(first.attrs(), first.in(2).shape());
  const int64_t channels = first.out(1).dim(1);
  first.input(0, "known");
  first.result(0, "counts");
  launches.push_back(first.perPoint(bins.counts(), "counts[point] = known[point];\n"));
  const std::string inside =
      fmt::format("const int64_t block = point / {}, lane = point % {};\nif (block % {} * {} + lane >= {}) return;\n",
                  form.rows * form.lanes, form.lanes, form.groups, form.lanes, channels);
  KernelWriter count(program, instr, shape);
  count.input(2, "x");
  count.result(0, "counts");
  launches.push_back(count.perPoint(count.in(2).elements(), inside + fill(R"(const int32_t bits = BITS_OF_F32(x[point]);
const int32_t magnitude = (bits & INT32_MAX) >> $dropped;
const int32_t step = magnitude <= $below ? 1 : magnitude - $below > $side ? $side : magnitude - $below;
const int32_t bin = magnitude == 0 ? $zero : magnitude >= $infinity ? $none : bits < 0 ? $zero - step : $zero + step;
GLOBAL uint32_t* words = (GLOBAL uint32_t*)(counts + bin);
if (ATOMIC_ADD(words, 1u) == UINT32_MAX) ATOMIC_ADD(words + 1, 1u);
)",
                                                                          {{"dropped", bins.dropped},
                                                                           {"below", bins.below},
                                                                           {"side", bins.side},
                                                                           {"zero", bins.zero()},
                                                                           {"infinity", bins.infinity},
                                                                           {"none", bins.notFinite()}})));
  for (Launch& launch : momentLaunches(KernelWriter(program, instr, shape), form))
    launches.push_back(std::move(launch));
  return launches;
}

}  // namespace aglow::codegen
