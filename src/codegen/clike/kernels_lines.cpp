// Along the lines of one axis: scans, the first k in order. A scanned line is an item's, or a group's where an item
// would be alone with it for long; elements are put in order by items of their own.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/clike/kernel_writer.h"
#include "codegen/nest/combination.h"
#include "codegen/nest/kinds.h"
#include "ops/all_ops.h"
#include "reference/axis_lines.h"
#include "support/sizes.h"

namespace aglow::codegen {

namespace {

// A kernel of the lines of its first input, `x`.
class LineWriter : public KernelWriter {
public:
  LineWriter(const Program& program, const Instr& instr, const DeviceShape& shape)
      : KernelWriter(program, instr, shape), lines_(in(0).shape(), attrs().integer("axis")) {
    input(0, "x");
  }

  int64_t count() const { return lines_.outer * lines_.stride; }
  int64_t extent() const { return lines_.extent; }

  // Items that share a line. Neighbouring lines are read together by neighbouring items, if there are enough of both.
  int64_t group() const {
    const DeviceShape& s = shape();
    const bool enough = lines_.stride > 1 && count() >= s.computeUnits * s.stepItems;
    return !s.sharesLocal || enough || extent() < 4 * s.stepItems ? 1 : rowGroup(extent(), 2, s);
  }

  // The element number `index` of the line, in a kind.
  std::string element(std::string_view index, ElemKind as) const {
    return elementText(kindOf(0), as, fmt::format("x[first + {} * {}]", index, lines_.stride));
  }

  // The text with these words, those of the line and the element's `type`.
  std::string text(std::string_view what, ElemKind type, std::vector<Word> words) const {
    words.insert(words.end(), {{"I", indexType()},
                               {"T", typeName(type)},
                               {"G", group()},
                               {"extent", lines_.extent},
                               {"stride", lines_.stride},
                               {"line", lines_.stride * lines_.extent}});
    return fill(what, words);
  }

  // The first element of the line with a number.
  std::string firstOf(std::string_view line) const {
    return fmt::format("const {} first = {} / {} * {} + {} % {};\n", indexType(), line, lines_.stride,
                       lines_.stride * lines_.extent, line, lines_.stride);
  }

  // An item or a group for each line, which is numbered by `point`; with `item` in its group.
  Launch perLine(const std::string& statements) {
    if (group() == 1)
      return perPoint(count(), firstOf("point") + "const int32_t item = 0;\n(void)item;\n" + statements);
    return finish(fmt::format("const {0} point = ({0})GROUP(0);\nconst int32_t item = (int32_t)LOCAL_ITEM(0);\n{1}{2}",
                              indexType(), firstOf("point"), statements),
                  {count() * group(), 1}, {group(), 1});
  }

private:
  AxisLines lines_;
};

}  // namespace

// An item of a group has a part of the line: it begins with what those before it come to.
std::vector<Launch> scanLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  LineWriter writer(program, instr, shape);
  const ElemKind kind = writer.kindOf(0);
  const auto [combine, sums, start] = nest::combinationOf(writer.attrs().word("kind"), kind);
  writer.result(0, "y");
  const int64_t part = ceilDiv(writer.extent(), writer.group());
  const std::string element =
      writer.element(writer.attrs().flag("reverse") ? fmt::format("({} - step)", writer.extent() - 1) : "step", sums);
  std::string text = writer.text("$T held = $start;\n", sums, {{"start", numberText(sums, start)}});
  text += writer.text("const $I begin = item * $part, end = begin + $part < $extent ? begin + $part : $extent;\n", sums,
                      {{"part", part}});
  if (writer.group() > 1)
    text += writer.text(R"(LOCAL_ARRAY $T parts[$G];
for ($I step = begin; step < end; ++step) held = $next;
parts[item] = held;
BARRIER();
held = $start;
for (int32_t i = 0; i < item; ++i) held = $joined;
)",
                        sums,
                        {{"start", numberText(sums, start)},
                         {"next", appliedText(combine, sums, "held", element)},
                         {"joined", appliedText(combine, sums, "held", "parts[i]")}});
  text += writer.text(
      R"(for ($I step = begin; step < end; ++step) {
  const $T next = $next;
  y[first + $i * $stride] = $stored;
  held = next;
}
)",
      sums,
      {{"i", writer.attrs().flag("reverse") ? fmt::format("({} - step)", writer.extent() - 1) : "step"},
       {"next", appliedText(combine, sums, "held", element)},
       {"stored", storedText(kind, convertedText(sums, kind, writer.attrs().flag("exclusive") ? "held" : "next"))}});
  return {writer.perLine(text)};
}

namespace {

constexpr int64_t kRanked = 64;  // elements that are compared each with each
constexpr int64_t kMerged = 8;   // runs that become one

// Lines on the way to their first k: runs of neighbours, of each the first `kept` in order; of the last one no more
// than it has. So a line needs `each` places, at most its elements, and no more of them than in the round before.
struct Runs {
  int64_t length, count, kept, each;

  static Runs of(int64_t length, int64_t extent, int64_t k) {
    const int64_t count = ceilDiv(extent, length), kept = std::min({k, length, extent});
    return {std::min(length, extent), count, kept, (count - 1) * kept + std::min(kept, extent - (count - 1) * length)};
  }
};

// From runs of so many to the whole line.
std::vector<Runs> runsOf(int64_t extent, int64_t k) {
  std::vector<Runs> all;
  for (int64_t length = kRanked; all.empty() || all.back().count > 1; length *= kMerged)
    all.push_back(Runs::of(length, extent, k));
  return all;
}

ElemKind placeKind(const AxisLines& lines) {
  return lines.extent <= std::numeric_limits<int32_t>::max() ? ElemKind::Int32 : ElemKind::Int64;
}

// Where runs are kept until the next round has read them: by turns behind each other, which the first two rounds have
// the room for.
int64_t runsAt(const std::vector<Runs>& all, size_t round, int64_t lines) {
  return round % 2 == 0 ? 0 : lines * all[0].each;
}

}  // namespace

int64_t topKScratch(const Program& program, const Instr& anchor, const DeviceShape& /*shape*/) {
  const AxisLines lines(program[anchor.inputs()[0].region].type.shape(), anchor.attrs.integer("axis"));
  const std::vector<Runs> all = runsOf(lines.extent, anchor.attrs.integer("k"));
  int64_t elements = 0;
  for (size_t round = 0; round + 1 < std::min<size_t>(all.size(), 3); ++round)
    elements += lines.outer * lines.stride * all[round].each;
  return elements * elemBytes(placeKind(lines));
}

// An element's place is the number of those that come before it: in its run of a few, where all are looked at (items in
// step, so that none ends early); then in the runs beside it, which are in order, until k do. NaN counts as the
// largest, and of equal ones the first is first.
std::vector<Launch> topKLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  const Instr& anchor = bodyOf(instr).front();
  const AxisLines lines(program[anchor.inputs()[0].region].type.shape(), anchor.attrs.integer("axis"));
  const int64_t k = anchor.attrs.integer("k"), count = lines.outer * lines.stride;
  const bool largest = anchor.attrs.flag("largest");
  const ElemKind computed = nest::computedKind(storageKind(program[anchor.inputs()[0].region].type.kind()));
  const auto ahead = [&](const char* a, const char* b) {
    const char *less = largest ? b : a, *more = largest ? a : b;
    return fmt::format("({} || ({} && {}))", appliedText(Scalar::Lt, computed, less, more),
                       appliedText(Scalar::IsNan, computed, more), appliedText(Scalar::Eq, computed, less, less));
  };
  const std::vector<Runs> all = runsOf(lines.extent, k);
  std::vector<Launch> launches;
  for (size_t round = 0; round < all.size(); ++round) {
    LineWriter writer(program, instr, shape);
    const Runs& to = all[round];
    std::string text;
    if (round == 0) {
      text = writer.text(R"(const $I own = point / $stride % $extent, line = point / $line * $stride + point % $stride;
const $I first = point - own * $stride, begin = own - own % $length;
const $I end = begin + $length < $extent ? begin + $length : $extent;
const $T value = $value;
$I before = 0;
for ($I i = begin; i < end; ++i) {
  const $T other = $other;
  if ($ahead || (i < own && !$behind)) ++before;
}
)",
                         computed,
                         {{"length", to.length},
                          {"k", k},
                          {"value", writer.element("own", computed)},
                          {"other", writer.element("i", computed)},
                          {"ahead", ahead("other", "value")},
                          {"behind", ahead("value", "other")}});
    } else {
      const Runs& from = all[round - 1];
      writer.scratch("runs", placeKind(lines));
      text = writer.text(R"(const $I line = point / $each, run = point % $each / $kept, place = point % $each % $kept;
$first
const $I own = runs[$from + point];
const $T value = $value;
$I before = place;
const $I begin = run - run % $merged, end = begin + $merged < $count ? begin + $merged : $count;
for ($I other = begin; other < end && before < $k; ++other) {
  if (other == run) continue;
  $I low = 0, high = $extent - other * $length;
  if (high > $kept) high = $kept;
  while (low < high) {
    const $I middle = (low + high) / 2, i = runs[$from + line * $each + other * $kept + middle];
    const $T met = $met;
    if (other < run ? !$behind : $ahead)
      low = middle + 1;
    else
      high = middle;
  }
  before += low;
}
)",
                         computed,
                         {{"each", from.each},
                          {"kept", from.kept},
                          {"count", from.count},
                          {"length", from.length},
                          {"first", writer.firstOf("line")},
                          {"from", runsAt(all, round - 1, count)},
                          {"merged", kMerged},
                          {"k", k},
                          {"value", writer.element("own", computed)},
                          {"met", writer.element("i", computed)},
                          {"ahead", ahead("met", "value")},
                          {"behind", ahead("value", "met")}});
    }
    text += "if (before >= " + std::to_string(k) + ") return;\n";
    if (to.count == 1) {
      writer.result(0, "values");
      writer.result(1, "places");
      text += writer.text(R"(const $I to = (line / $stride * $k + before) * $stride + line % $stride;
values[to] = x[first + own * $stride];
places[to] = own;
)",
                          computed, {{"k", k}});
    } else {
      if (round == 0) writer.scratch("runs", placeKind(lines));
      text += fmt::format("runs[{} + line * {} + own / {} * {} + before] = own;\n", runsAt(all, round, count), to.each,
                          to.length, to.kept);
    }
    const int64_t points = round == 0 ? count * lines.extent : count * all[round - 1].each;
    launches.push_back(writer.perPoint(points, text));
  }
  return launches;
}

}  // namespace aglow::codegen
