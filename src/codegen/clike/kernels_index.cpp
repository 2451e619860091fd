// At computed places: gathering and scattering.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/clike/kernel_writer.h"
#include "codegen/clike/row_order.h"
#include "codegen/nest/combination.h"
#include "codegen/nest/kinds.h"
#include "reference/axis_lines.h"
#include "support/sizes.h"

namespace aglow::codegen {

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

namespace {

// First which update is the last of each row, then every element from there.
std::vector<Launch> replacing(const Program& program, const Instr& instr, const DeviceShape& shape,
                              const AxisLines& rows) {
  KernelWriter clear(program, instr, shape), mark = clear, write = clear;
  for (KernelWriter* one : {&clear, &mark, &write}) one->scratch("last", ElemKind::Int32);
  std::vector<Launch> launches = {clear.perPoint(rows.extent, "last[point] = -1;\n")};
  mark.input(1, "indices");
  const std::string text = checkedPosition(mark, "point", rows.extent, "return;");
  launches.push_back(mark.perPoint(mark.in(1).elements(), text + "ATOMIC_MAX(last + position, (int32_t)point);\n"));
  const ElemKind raw = rawKind(write.resultKind());
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

RowOrder orderOf(const Type& data, const Type& indices, const DeviceShape& shape) {
  return RowOrder::of(data.dim(0), indices.elements(), shape);
}

// First the updates in the order of their rows; then every element, combined with those of its row.
std::vector<Launch> combining(const Program& program, const Instr& instr, const DeviceShape& shape,
                              const AxisLines& rows) {
  KernelWriter check(program, instr, shape), write = check;
  const RowOrder order = orderOf(check.in(0), check.in(1), shape);
  check.input(1, "indices");
  order.declare(check, {"row", "ends"});
  const std::string number = order.begin();
  std::vector<Launch> launches = {
      check.perPoint(std::max(order.rows, order.updates),
                     number + checkedPosition(check, "point", rows.extent, "row[point] = 0;\n  return;") +
                         "row[point] = position;\n")};
  for (Launch& launch : order.launches(program, instr, shape)) launches.push_back(std::move(launch));
  const ElemKind kind = write.resultKind();
  const auto [combine, sums, start] = nest::combinationOf(write.attrs().word("reduction"), kind);
  order.declare(write, {"firsts", "ends", "order"});
  write.input(0, "data");
  write.input(2, "updates");
  write.result(0, "y");
  // Items that run one after the other have several neighbours each, which are vectors.
  const int64_t piece = shape.sharesLocal ? 1 : std::min<int64_t>(rows.stride, 64),
                pieces = ceilDiv(rows.stride, piece);
  const std::string count = pieces * piece == rows.stride
                                ? std::to_string(piece)
                                : fmt::format("(int32_t)({0} - side < {1} ? {0} - side : {1})", rows.stride, piece);
  launches.push_back(
      write.perPoint(rows.extent * pieces,
                     fill(R"(const $I hit = point / $pieces, side = point % $pieces * $piece;
const $I to = hit * $stride + side, end = ends[hit];
const int32_t count = $count;
if (end == 0) {
  for (int32_t c = 0; c < count; ++c) y[to + c] = data[to + c];
  return;
}
$T sums[$piece];
for (int32_t c = 0; c < count; ++c) sums[c] = $start;
for ($I at = firsts[hit]; at < end; ++at) {
  const $I from = ($I)$from * $stride + side;
  for (int32_t c = 0; c < count; ++c) sums[c] = $sum;
}
for (int32_t c = 0; c < count; ++c) y[to + c] = $stored;
)",
                          {{"I", write.indexType()},
                           {"T", typeName(sums)},
                           {"stride", rows.stride},
                           {"piece", piece},
                           {"pieces", pieces},
                           {"count", count},
                           {"start", elementText(kind, sums, "data[to + c]")},
                           {"from", order.number("at")},
                           {"sum", appliedText(combine, sums, "sums[c]", elementText(kind, sums, "updates[from + c]"))},
                           {"stored", storedText(kind, convertedText(sums, kind, "sums[c]"))}})));
  return launches;
}

}  // namespace

int64_t scatterScratch(const Program& program, const Instr& anchor, const DeviceShape& shape) {
  const auto typeOf = [&](size_t input) -> const Type& { return program[anchor.inputs()[input].region].type; };
  if (typeOf(1).elements() == 0 || typeOf(0).elements() == 0) return 0;
  if (anchor.attrs.word("reduction") == "none") return typeOf(0).dim(0) * elemBytes(ElemKind::Int32);
  return orderOf(typeOf(0), typeOf(1), shape).bytes();
}

std::vector<Launch> scatterLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  const KernelWriter writer(program, instr, shape);
  if (writer.out().elements() == 0) return checkLaunches(program, instr, shape, 0);
  if (writer.in(1).elements() == 0) return copyLaunches(program, instr, shape);
  const AxisLines rows(writer.in(0).shape(), 0);
  return (writer.attrs().word("reduction") == "none" ? replacing : combining)(program, instr, shape, rows);
}

}  // namespace aglow::codegen
