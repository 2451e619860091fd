// Over axes and at computed places: reductions, gathering and scattering.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/clike/kernel_writer.h"
#include "codegen/nest/build.h"
#include "codegen/nest/combination.h"
#include "codegen/nest/kinds.h"
#include "ops/all_ops.h"
#include "ops/observed.h"
#include "reference/axis_lines.h"

namespace aglow::codegen {

std::vector<Launch> reduceLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  if (instr.kind == Instr::Kind::Compute && reducedRow(program, instr) > 0) {
    const Result<BodyForm> form = formOf(program, bodySteps(instr));
    if (form.ok() && !form->anchored) {
      const nest::Nest nest = nest::nestOf(program, instr);
      return nestLaunches(program, instr, {&nest, 1}, shape);
    }
  }
  KernelWriter writer(program, instr, shape);
  const std::string& how = writer.attrs().word("kind");
  const ElemKind kind = writer.kindOf(0), given = nest::computedKind(kind);
  const auto [combine, sums, start] = nest::combinationOf(how, kind);
  const Shape& x = writer.in(0).shape();
  const std::vector<int64_t> strides = x.strides();
  const std::vector<int64_t>& axes = writer.attrs().ints("axes");
  writer.input(0, "x");
  std::string place = "0";
  int kept = 0;
  int64_t count = 1;
  TextBlock loops;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int64_t stride = strides[static_cast<size_t>(axis)];
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      place += fmt::format(" + i{} * {}", kept++, stride);
      continue;
    }
    if (writer.attrs().flag("keepdims")) ++kept;
    count *= x[axis];
    loops.open(fmt::format("for ({0} r{1} = 0; r{1} < {2}; ++r{1})", writer.indexType(), axis, x[axis]));
    place += fmt::format(" + r{} * {}", axis, stride);
  }
  loops.line(fmt::format("sum = {};",
                         appliedText(combine, sums, "sum", elementText(kind, sums, fmt::format("x[{}]", place)))));
  for (size_t i = 0; i < axes.size(); ++i) loops.close();
  std::string text = writer.resultIndices("point");
  text += fmt::format("{} sum = {};\n", typeName(sums), numberText(sums, start));
  text += loops.take();
  if (how == "mean") {
    const uint64_t divisor =
        isFloat(sums) ? std::bit_cast<uint64_t>(static_cast<double>(count)) : static_cast<uint64_t>(count);
    text += fmt::format("sum = {};\n", appliedText(Scalar::Div, sums, "sum", numberText(sums, divisor)));
  }
  text += fmt::format("const {} given = {};\n", typeName(given), convertedText(sums, given, "sum"));
  return {writer.perPoint(writer.out().elements(), text + writer.epilogue())};
}

namespace {

// Statements that define `position` from an element of the indices; those outside of the axis are reported, and
// skipped.
std::string checkedPosition(KernelWriter& writer, const std::string& number, int64_t extent, std::string_view skip) {
  const std::string report = writer.reportIndex("index");
  return fmt::format(R"(const int64_t index = {};
if (index < -INT64_C({}) || index >= INT64_C({})) {{
  {}
  {}
}}
const {} position = ({})(index < 0 ? index + {} : index);
)",
                     elementText(writer.kindOf(1), ElemKind::Int64, fmt::format("indices[{}]", number)), extent, extent,
                     report, skip, writer.indexType(), writer.indexType(), extent);
}

// Where there is nothing to move, indices are still checked.
std::vector<Launch> checkLaunches(const Program& program, const Instr& instr, const DeviceShape& shape, int64_t axis) {
  KernelWriter writer(program, instr, shape);
  const int64_t count = writer.in(1).elements();
  if (count == 0) return {};
  writer.input(1, "indices");
  return {writer.perPoint(count, checkedPosition(writer, "point", writer.in(0).dim(static_cast<int>(axis)), "return;") +
                                     "(void)position;\n")};
}

}  // namespace

std::vector<Launch> gatherLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  KernelWriter writer(program, instr, shape);
  const AxisLines lines(writer.in(0).shape(), writer.attrs().integer("axis"));
  if (writer.out().elements() == 0) return checkLaunches(program, instr, shape, writer.attrs().integer("axis"));
  const int64_t count = writer.in(1).elements();
  const ElemKind raw = rawKind(writer.out().kind());
  writer.input(0, "data", raw);
  writer.input(1, "indices");
  writer.result(0, "y", raw);
  const std::string text =
      checkedPosition(writer, fmt::format("point / {} % {}", lines.stride, count), lines.extent, "return;") +
      fmt::format("y[point] = data[(point / {} * {} + position) * {} + point % {}];\n", lines.stride * count,
                  lines.extent, lines.stride, lines.stride);
  return {writer.perPoint(writer.out().elements(), text)};
}

// First which update is the last of each row; then every element, combined with its updates in their order.
std::vector<Launch> scatterLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  const ElemKind index = ElemKind::Int32;
  std::vector<Launch> launches;
  const auto writerOf = [&] { return KernelWriter(program, instr, shape); };
  KernelWriter clear = writerOf();
  if (clear.out().elements() == 0) return checkLaunches(program, instr, shape, 0);
  const AxisLines rows(clear.in(0).shape(), 0);
  const int64_t updates = clear.in(1).elements();
  clear.scratch("last", index);
  launches.push_back(clear.perPoint(rows.extent, "last[point] = -1;\n"));
  if (updates > 0) {
    KernelWriter mark = writerOf();
    mark.input(1, "indices");
    mark.scratch("last", index);
    const std::string text = checkedPosition(mark, "point", rows.extent, "return;");
    launches.push_back(mark.perPoint(updates, text + "ATOMIC_MAX(last + position, (int32_t)point);\n"));
  }
  KernelWriter write = writerOf();
  const std::string& reduction = write.attrs().word("reduction");
  const ElemKind kind = write.resultKind(), raw = rawKind(kind);
  write.scratch("last", index);
  if (reduction == "none") {
    write.input(0, "data", raw);
    write.input(2, "updates", raw);
    write.result(0, "y", raw);
    launches.push_back(write.perPoint(write.out().elements(), fmt::format(R"(const {0} row = point / {1};
const {0} from = last[row];
y[point] = from < 0 ? data[point] : updates[from * {1} + point % {1}];
)",
                                                                          write.indexType(), rows.stride)));
    return launches;
  }
  const auto [combine, sums, start] = nest::combinationOf(reduction, kind);
  write.input(0, "data");
  write.input(1, "indices");
  write.input(2, "updates");
  write.result(0, "y");
  const std::string update = elementText(kind, sums, fmt::format("updates[i * {0} + point % {0}]", rows.stride));
  launches.push_back(write.perPoint(write.out().elements(),
                                    fill(R"(const $I row = point / $stride;
const int32_t end = last[row];
if (end < 0) {
  y[point] = data[point];
  return;
}
$T sum = $start;
for ($I i = 0; i <= end; ++i) {
  const int64_t index = $index;
  if ((index < 0 ? index + $rows : index) == row) sum = $sum;
}
y[point] = $stored;
)",
                                         {{"I", write.indexType()},
                                          {"T", typeName(sums)},
                                          {"stride", rows.stride},
                                          {"rows", rows.extent},
                                          {"start", elementText(kind, sums, "data[point]")},
                                          {"index", elementText(write.kindOf(1), ElemKind::Int64, "indices[i]")},
                                          {"sum", appliedText(combine, sums, "sum", update)},
                                          {"stored", storedText(kind, convertedText(sums, kind, "sum"))}})));
  return launches;
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
  const auto wide = [](double number) { return numberText(ElemKind::Float64, std::bit_cast<uint64_t>(number)); };
  KernelWriter moments(program, instr, shape);
  moments.input(1, "known");
  moments.input(2, "x");
  moments.result(1, "rows");
  launches.push_back(moments.perPoint(
      channels, fill(R"(f64 low = load_f64(known[point]), high = load_f64(known[$n + point]);
f64 sum = $zero, squares = $zero;
for ($I outer = 0; outer < $outer; ++outer)
  for ($I row = 0; row < $rows; ++row) {
    const float value = x[((outer * $groups + point / $lanes) * $rows + row) * $lanes + point % $lanes];
    if (!(value - value == 0)) continue;
    const f64 wide = f64_of_f32(value);
    low = lt_f64(wide, low) ? wide : low;
    high = lt_f64(high, wide) ? wide : high;
    sum = add_f64(sum, wide);
    squares = add_f64(squares, mul_f64(wide, wide));
  }
rows[point] = store_f64(low);
rows[$n + point] = store_f64(high);
for (int32_t i = 0; i < 2; ++i) {
  const f64 mean = div_f64(i == 0 ? sum : squares, $each), steps = mul_f64(mean, $finer);
  const f64 grid = lt_f64(abs_f64(steps), $most) ? mul_f64(round_f64(steps), $coarser) : mean;
  rows[(2 + i) * $n + point] = store_f64(add_f64(load_f64(known[(2 + i) * $n + point]), grid));
}
)",
                     {{"I", moments.indexType()},
                      {"n", channels},
                      {"outer", form.outer},
                      {"groups", form.groups},
                      {"rows", form.rows},
                      {"lanes", form.lanes},
                      {"zero", zeroText(ElemKind::Float64)},
                      {"finer", wide(0x1p30)},
                      {"coarser", wide(0x1p-30)},
                      {"most", wide(0x1p51)},
                      {"each", wide(static_cast<double>(std::max<int64_t>(form.outer * form.rows, 1)))}})));
  return launches;
}

}  // namespace aglow::codegen
