// Nests with rows: a group has one row, or several short ones side by side; where items run one after the other, an
// item has them. Reductions of a group go through local memory, in two rounds. Where rows come in fours, items have
// four neighbours at a time, and keep what later stages need in registers.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "codegen/clike/reductions.h"
#include "support/sizes.h"

namespace aglow::codegen {

namespace {

constexpr int64_t kMostSteps = 8;  // of an item along its row, in fours, for it all to be in registers

// The last of the two rounds of a reduction: so many items have the sums of the others.
int64_t secondRound(int64_t group) { return group >= 128 ? 16 : std::max<int64_t>(group / 8, 1); }

// Of a group: items of each row, and rows.
struct RowItems {
  int64_t items = 1, rows = 1;
  bool fours = false;
  bool side = false;  // rows lie side by side, and what is kept of them is in registers
};

RowItems rowItems(int64_t count, int64_t length, const DeviceShape& shape) {
  const int64_t units = std::max<int64_t>(shape.computeUnits, 1);
  RowItems row;
  if (!shape.sharesLocal) {
    // So many that a group is worth its start.
    constexpr int64_t kPoints = 4096, kGroups = 16;
    row.rows =
        std::clamp<int64_t>(count / (kGroups * units), 1, std::max<int64_t>(kPoints / std::max<int64_t>(length, 1), 1));
    return row;
  }
  row.fours = length > 0 && length % 4 == 0;
  row.items = rowGroup(length, row.fours ? 16 : 2, shape);
  if (row.fours && length > 4 * row.items * kMostSteps) {
    row.fours = false;
    row.items = rowGroup(length, 2, shape);
  }
  // Groups of one step would leave half of a unit's room for items empty.
  const int64_t whole = std::min(shape.groupItems, 4 * shape.stepItems), most = row.items;
  if (most > shape.stepItems || length == 0) return row;
  row.side = true;
  for (row.items = 1; 2 * row.items <= most && 2 * row.items * (row.fours ? 4 : 1) <= length;) row.items *= 2;
  while (2 * row.rows * row.items <= whole && count >= 2 * row.rows * units) row.rows *= 2;
  return row;
}

}  // namespace

int64_t rowGroup(int64_t length, int64_t each, const DeviceShape& shape) {
  if (!shape.sharesLocal) return 1;
  const int64_t most = std::min<int64_t>(shape.groupItems, 256);
  int64_t group = shape.stepItems;
  while (2 * group <= most && group * each <= length) group *= 2;
  return std::min(group, shape.groupItems);
}

class RowWriter {
public:
  RowWriter(KernelWriter& writer, const nest::Nest& nest, const RowItems& row)
      : writer_(writer), nest_(nest), printer_(nest, out_, {}, row.fours ? "point" : ""), row_(row) {
    if (row.fours || row.side) printer_.keepUnder(row.fours ? "step * 4 + lane" : "step");
  }

  NestPrinter& printer() { return printer_; }

  std::string text() {
    const size_t outer = printer_.outerAxes();
    for (size_t axis = 0; axis < nest_.axes.size(); ++axis)
      (axis < outer ? outerDims_ : innerDims_).push_back(nest_.axes[axis].extent);
    for (size_t i = 0; i < nest_.rows.size(); ++i)
      out_.line(fmt::format("{}{} k{}[{}];", inRegisters() ? "" : "LOCAL_ARRAY ", storedName(nest_.rows[i]), i,
                            inRegisters() ? steps() * each() : nest_.rowLength()));
    if (row_.items > 1 && !nest_.reductions.empty()) declareSums();
    const bool loops = chooseRow();
    out_.line(writer_.indices(outerDims_, "row"));
    for (const nest::Stage& stage : nest_.stages) {
      printer_.values(stage.row);
      storeOnce(stage.row);
      if (!stage.passes()) continue;
      for (const int id : stage.reductions) printer_.startReduction(id);
      row_.fours ? passInFours(stage) : row_.side ? passInSteps(stage) : pass(stage);
      if (row_.items > 1 && !stage.reductions.empty()) reduce(stage);
    }
    if (loops) out_.close();
    return out_.take();
  }

private:
  bool inRegisters() const { return row_.fours || row_.side; }
  int64_t each() const { return row_.fours ? 4 : 1; }  // points of an item in a step
  int64_t steps() const { return ceilDiv(nest_.rowLength(), each() * row_.items); }
  // Whether the last group has items without a row; they go along as far as barriers need them.
  bool lacks() const { return row_.side && row_.items > 1 && nest_.rowCount() % row_.rows != 0; }

  void declareSums() {
    std::vector<ElemKind> kinds;
    kinds.reserve(nest_.reductions.size());
    for (const nest::Reduction& sum : nest_.reductions) kinds.push_back(sum.kind);
    size_t meet = 0;
    for (const nest::Stage& stage : nest_.stages) meet = std::max(meet, stage.reductions.size());
    const int64_t first = row_.items * row_.rows, second = secondRound(row_.items) * row_.rows;
    sums_.emplace(kinds, static_cast<int64_t>(meet), first + second, writer_.shape());
    out_.line(sums_->array("firstSums", first) + sums_->array("lastSums", second));
  }

  // Which row it is; whether that opens a loop.
  bool chooseRow() {
    const std::string& type = writer_.indexType();
    if (row_.side) {
      out_.line(fmt::format("const int32_t item = (int32_t)LOCAL_ITEM(0) % {0}, beside = (int32_t)LOCAL_ITEM(0) / {0};",
                            row_.items));
      out_.line(fmt::format("const {0} wanted = ({0})GROUP(0) * {1} + beside;", type, row_.rows));
      if (lacks())
        out_.line(fmt::format("const bool there = wanted < {};", nest_.rowCount()));
      else if (nest_.rowCount() % row_.rows != 0)
        out_.line(fmt::format("if (wanted >= {}) return;", nest_.rowCount()));
      out_.line(lacks() ? fmt::format("const {} row = there ? wanted : {};", type, nest_.rowCount() - 1)
                        : fmt::format("const {} row = wanted;", type));
      return false;
    }
    if (row_.rows > 1) {
      out_.open(
          fmt::format("for ({0} row = ({0})GROUP(0) * {1}, end = row + {1} < {2} ? row + {1} : {2}; row < end; "
                      "++row)",
                      type, row_.rows, nest_.rowCount()));
      return true;
    }
    out_.line(fmt::format("const {0} row = ({0})GROUP(0);", type));
    if (row_.items > 1) out_.line("const int32_t item = (int32_t)LOCAL_ITEM(0);");
    return false;
  }

  // What is stored may take the place of an operand that all items have read.
  void storeOnce(const nest::Block& block) {
    if (block.stores.empty()) return;
    if (row_.items > 1) out_.line("BARRIER_OF_ALL();");
    out_.open(row_.items > 1 ? lacks() ? "if (item == 0 && there)" : "if (item == 0)" : "");
    printer_.stores(block);
    out_.close();
  }

  // The indices of an element of the row.
  std::string inner(const std::string& number) const { return writer_.indices(innerDims_, number, outerDims_.size()); }

  void pass(const nest::Stage& stage) {
    out_.open(fmt::format("for ({0} at = {1}; at < {2}; at += {3})", writer_.indexType(), row_.items > 1 ? "item" : "0",
                          nest_.rowLength(), row_.items));
    point(stage);
    out_.close();
  }

  void passInSteps(const nest::Stage& stage) {
    openStep();
    out_.line(fmt::format("const {} at = step * {} + item;", writer_.indexType(), row_.items));
    skipOutside("at");
    point(stage);
    out_.close();
  }

  void point(const nest::Stage& stage) {
    out_.line(inner("at"));
    printer_.values(stage.each);
    printer_.stores(stage.each);
    for (const int id : stage.reductions) printer_.combine(id);
  }

  void openStep() {
    out_.line("#pragma unroll");
    out_.open(fmt::format("for (int32_t step = 0; step < {}; ++step)", steps()));
  }

  void skipOutside(std::string_view first) {
    if (lacks()) out_.line("if (!there) continue;");
    if (nest_.rowLength() % (each() * row_.items) != 0)
      out_.line(fmt::format("if ({} >= {}) continue;", first, nest_.rowLength()));
  }

  void passInFours(const nest::Stage& stage) {
    const std::string& type = writer_.indexType();
    openStep();
    out_.line(fmt::format("const {} first = (step * {} + item) * 4;", type, row_.items));
    skipOutside("first");
    std::string after;
    for (const int id : stage.reductions) after += printer_.combination(id) + "\n";
    const nest::Block* const blocks[] = {&stage.each};
    writer_.inFours(
        nest_, blocks, printer_, out_,
        fmt::format("const {0} at = first + lane, point = row * {1} + at;\n{2}", type, nest_.rowLength(), inner("at")),
        "", after);
    out_.close();
  }

  // All sums of the stage, as many at once as there is room for. Two barriers are enough for places that are used
  // again: who is past one of them has read what lies behind the other.
  void reduce(const nest::Stage& stage) {
    const std::span<const int> all = stage.reductions;
    const auto atOnce = static_cast<size_t>(sums_->atOnce());
    for (size_t from = 0; from < all.size(); from += atOnce)
      reduce(all.subspan(from, std::min(atOnce, all.size() - from)));
  }

  void reduce(std::span<const int> ids) {
    const int64_t last = secondRound(row_.items);
    // Where the row's own begin.
    const std::string own = row_.side ? fmt::format("beside * {} + ", row_.items) : "";
    const std::string ownLast = row_.side ? fmt::format("beside * {} + ", last) : "";
    out_.open("");
    for (int64_t slot = 0; slot < std::ssize(ids); ++slot) {
      const int id = ids[static_cast<size_t>(slot)];
      const ElemKind kind = nest_.reductions[static_cast<size_t>(id)].kind;
      out_.line(sums_->pointer(kind, fmt::format("s{}", id), "firstSums", slot, row_.items * row_.rows) +
                sums_->pointer(kind, fmt::format("f{}", id), "lastSums", slot, last * row_.rows));
    }
    for (const int id : ids) out_.line(fmt::format("s{0}[{1}item] = r{0};", id, own));
    out_.line("BARRIER();");
    out_.open(fmt::format("if (item < {})", last));
    for (const int id : ids) {
      out_.line("#pragma unroll");
      out_.line(fmt::format("for (int32_t i = 1; i < {}; ++i) r{} = {};", row_.items / last, id,
                            printer_.combined(id, fmt::format("s{}[{}item + i * {}]", id, own, last))));
      out_.line(fmt::format("f{0}[{1}item] = r{0};", id, ownLast));
    }
    out_.close();
    out_.line("BARRIER();");
    for (const int id : ids) {
      out_.line(fmt::format("r{0} = f{0}[{1}0];", id, ownLast));
      out_.line("#pragma unroll");
      out_.line(fmt::format("for (int32_t i = 1; i < {}; ++i) r{} = {};", last, id,
                            printer_.combined(id, fmt::format("f{}[{}i]", id, ownLast))));
    }
    out_.close();
  }

  KernelWriter& writer_;
  const nest::Nest& nest_;
  TextBlock out_;
  NestPrinter printer_;
  RowItems row_;
  std::optional<LocalSums> sums_;  // where items share rows
  std::vector<int64_t> outerDims_, innerDims_;
};

Launch rowLaunch(KernelWriter& writer, const nest::Nest& nest) {
  const RowItems row = rowItems(nest.rowCount(), nest.rowLength(), writer.shape());
  RowWriter rows(writer, nest, row);
  writer.declare(nest, rows.printer());
  const std::string text = rows.text();
  const int64_t group = row.side ? row.items * row.rows : row.items;
  return writer.finish(text, {ceilDiv(nest.rowCount(), row.rows) * group, 1}, {group, 1});
}

}  // namespace aglow::codegen
