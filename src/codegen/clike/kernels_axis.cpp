// At computed places: gathering and scattering; what moves elements, and what observes them.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/clike/reductions.h"
#include "codegen/nest/combination.h"
#include "ops/all_ops.h"
#include "ops/axes.h"
#include "ops/observed.h"
#include "reference/axis_lines.h"

namespace aglow::codegen {

namespace {

// The element at offset + sum of index * stride of one operand goes to such a place of another.
nest::Nest moved(const Instr& instr, const Program& program, const std::vector<int64_t>& dims, size_t from,
                 std::vector<int64_t> fromStrides, int64_t fromOffset, std::vector<int64_t> toStrides,
                 int64_t toOffset) {
  nest::Nest nest;
  for (const Operand& operand : instr.operands) {
    if (operand.region == kNoRegion) {
      nest.operands.push_back({.access = operand.access});
      continue;
    }
    const Type& type = program[operand.region].type;
    nest.operands.push_back({.kind = rawKind(type.kind()), .access = operand.access, .elements = type.elements()});
  }
  const ElemKind kind = nest.operands[0].kind;
  // Neighbouring axes that both walk as one become one.
  std::vector<int64_t> fromSteps, toSteps;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 1) continue;
    if (!nest.axes.empty() && fromSteps.back() == fromStrides[axis] * dims[axis] &&
        toSteps.back() == toStrides[axis] * dims[axis]) {
      nest.axes.back().extent *= dims[axis];
      fromSteps.back() = fromStrides[axis];
      toSteps.back() = toStrides[axis];
      continue;
    }
    nest.axes.push_back({.extent = dims[axis]});
    fromSteps.push_back(fromStrides[axis]);
    toSteps.push_back(toStrides[axis]);
  }
  if (nest.axes.empty()) {
    nest.axes.push_back({});
    fromSteps.push_back(0);
    toSteps.push_back(0);
  }
  nest.accesses.push_back(
      {.operand = static_cast<int>(from), .kind = kind, .strides = std::move(fromSteps), .offset = fromOffset});
  nest.accesses.push_back({.operand = 0, .kind = kind, .strides = std::move(toSteps), .offset = toOffset});
  nest.values.push_back({.op = nest::Expr::Op::Load, .kind = kind, .a = 0});
  nest::Stage stage;
  stage.each = {.begin = 0, .end = 1, .stores = {{.value = 0, .access = 1}}};
  nest.stages.push_back(std::move(stage));
  return nest;
}

int64_t dot(const std::vector<int64_t>& index, const std::vector<int64_t>& strides) {
  int64_t sum = 0;
  for (size_t i = 0; i < index.size(); ++i) sum += index[i] * strides[i];
  return sum;
}

}  // namespace

std::vector<Launch> copyLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  const int64_t elements = program[instr.operands[0].region].type.elements();
  const nest::Nest nest = moved(instr, program, {elements}, 1, {1}, 0, {1}, 0);
  return nestLaunches(program, instr, {&nest, 1}, shape);
}

// Transpose, Slice, Concat, Pad: copies with strides, one after the other.
std::vector<Launch> moveLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  const Attrs& attrs = instr.attrs;
  const auto typeOf = [&](size_t operand) -> const Type& { return program[instr.operands[operand].region].type; };
  const Shape &y = typeOf(0).shape(), &x = typeOf(1).shape();
  const std::vector<int64_t> to = y.strides();
  std::vector<int64_t> from = x.strides();
  std::vector<nest::Nest> nests;
  switch (opOf(attrs.op())) {
    case Op::Transpose: {
      std::vector<int64_t> permuted;
      for (const int64_t axis : attrs.ints("perm")) permuted.push_back(from[static_cast<size_t>(axis)]);
      nests.push_back(moved(instr, program, y.dims(), 1, permuted, 0, to, 0));
      break;
    }
    case Op::Slice: {
      const int64_t start = dot(attrs.ints("starts"), from);
      const std::vector<int64_t> steps = filled(attrs.ints("steps"), y.rank(), 1);
      for (size_t axis = 0; axis < from.size(); ++axis) from[axis] *= y[static_cast<int>(axis)] > 1 ? steps[axis] : 0;
      nests.push_back(moved(instr, program, y.dims(), 1, from, start, to, 0));
      break;
    }
    case Op::Concat: {
      const auto axis = static_cast<int>(attrs.integer("axis"));
      int64_t position = 0;
      for (size_t part = 1; part < instr.operands.size(); ++part) {
        const Shape& one = typeOf(part).shape();
        nests.push_back(
            moved(instr, program, one.dims(), part, one.strides(), 0, to, position * to[static_cast<size_t>(axis)]));
        position += one[axis];
      }
      break;
    }
    default:
      nests.push_back(moved(instr, program, y.dims(), 2, std::vector<int64_t>(to.size(), 0), 0, to, 0));
      nests.push_back(moved(instr, program, x.dims(), 1, from, 0, to, dot(attrs.ints("before"), to)));
  }
  return nestLaunches(program, instr, nests, shape);
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
