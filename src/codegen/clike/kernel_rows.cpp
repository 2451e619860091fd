// Nests with rows: a group has one row at a time, or an item does. Reductions of a group go through local memory, in
// two rounds. Where rows come in fours, items have four neighbours at a time, and keep what later stages need in
// registers.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/clike/kernel_writer.h"
#include "support/sizes.h"

namespace aglow::codegen {

namespace {

constexpr int64_t kMostSteps = 8;  // of an item along its row, in fours, for it all to be in registers

// The last of the two rounds of a reduction: so many items have the sums of the others.
int64_t secondRound(int64_t group) { return group >= 128 ? 16 : std::max<int64_t>(group / 8, 1); }

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
  RowWriter(KernelWriter& writer, const nest::Nest& nest, const std::string& point, int64_t group, bool fours)
      : writer_(writer), nest_(nest), printer_(nest, out_, {}, point), group_(group), fours_(fours) {}

  NestPrinter& printer() { return printer_; }

  std::string text() {
    const int64_t length = nest_.rowLength(), steps = ceilDiv(length, 4 * group_);
    const size_t outer = printer_.outerAxes();
    for (size_t axis = 0; axis < nest_.axes.size(); ++axis)
      (axis < outer ? outerDims_ : innerDims_).push_back(nest_.axes[axis].extent);
    for (size_t i = 0; i < nest_.rows.size(); ++i)
      out_.line(fmt::format("{}{} k{}[{}];", fours_ ? "" : "LOCAL_ARRAY ", storedName(nest_.rows[i]), i,
                            fours_ ? 4 * steps : length));
    if (group_ > 1)
      for (size_t i = 0; i < nest_.reductions.size(); ++i)
        out_.line(fmt::format("LOCAL_ARRAY {0} s{1}[{2}];\nLOCAL_ARRAY {0} f{1}[{3}];",
                              typeName(nest_.reductions[i].kind), i, group_, secondRound(group_)));
    const std::string& type = writer_.indexType();
    out_.line(fmt::format("const {0} row = ({0})GROUP(0);", type));
    if (group_ > 1) out_.line("const int32_t item = (int32_t)LOCAL_ITEM(0);");
    out_.line(writer_.indices(outerDims_, "row"));
    for (const nest::Stage& stage : nest_.stages) {
      printer_.values(stage.row);
      storeOnce(stage.row);
      if (stage.each.empty()) continue;
      for (const int id : stage.reductions) printer_.startReduction(id);
      fours_ ? passInFours(stage) : pass(stage);
      if (group_ > 1 && !stage.reductions.empty()) reduce(stage);
    }
    return out_.take();
  }

private:
  void storeOnce(const nest::Block& block) {
    if (block.stores.empty()) return;
    if (group_ > 1) out_.line("BARRIER();");
    out_.open(group_ > 1 ? "if (item == 0)" : "");
    printer_.stores(block);
    out_.close();
  }

  // The indices of an element of the row.
  std::string inner(const std::string& number) const { return writer_.indices(innerDims_, number, outerDims_.size()); }

  void pass(const nest::Stage& stage) {
    out_.open(fmt::format("for ({0} at = {1}; at < {2}; at += {3})", writer_.indexType(), group_ > 1 ? "item" : "0",
                          nest_.rowLength(), group_));
    out_.line(inner("at"));
    printer_.values(stage.each);
    printer_.stores(stage.each);
    for (const int id : stage.reductions) printer_.combine(id);
    out_.close();
  }

  void passInFours(const nest::Stage& stage) {
    const int64_t length = nest_.rowLength();
    const std::string& type = writer_.indexType();
    out_.line("#pragma unroll");
    out_.open(fmt::format("for (int32_t step = 0; step < {}; ++step)", ceilDiv(length, 4 * group_)));
    out_.line(fmt::format("const {} first = (step * {} + item) * 4;", type, group_));
    if (length % (4 * group_) != 0) out_.line(fmt::format("if (first >= {}) continue;", length));
    std::string after;
    for (const int id : stage.reductions) after += printer_.combination(id) + "\n";
    const nest::Block* const blocks[] = {&stage.each};
    writer_.inFours(nest_, blocks, printer_, out_,
                    fmt::format("const {0} at = first + lane, point = row * {1} + at;\n{2}", type, length, inner("at")),
                    "", after);
    out_.close();
  }

  void reduce(const nest::Stage& stage) {
    const int64_t last = secondRound(group_);
    for (const int id : stage.reductions) out_.line(fmt::format("s{0}[item] = r{0};", id));
    out_.line("BARRIER();");
    out_.open(fmt::format("if (item < {})", last));
    for (const int id : stage.reductions) {
      out_.line("#pragma unroll");
      out_.line(fmt::format("for (int32_t i = 1; i < {}; ++i) r{} = {};", group_ / last, id,
                            printer_.combined(id, fmt::format("s{}[item + i * {}]", id, last))));
      out_.line(fmt::format("f{0}[item] = r{0};", id));
    }
    out_.close();
    out_.line("BARRIER();");
    for (const int id : stage.reductions) {
      out_.line(fmt::format("r{0} = f{0}[0];", id));
      out_.line("#pragma unroll");
      out_.line(fmt::format("for (int32_t i = 1; i < {}; ++i) r{} = {};", last, id,
                            printer_.combined(id, fmt::format("f{}[i]", id))));
    }
  }

  KernelWriter& writer_;
  const nest::Nest& nest_;
  TextBlock out_;
  NestPrinter printer_;
  int64_t group_;
  bool fours_;
  std::vector<int64_t> outerDims_, innerDims_;
};

Launch rowLaunch(KernelWriter& writer, const nest::Nest& nest) {
  const DeviceShape& shape = writer.shape();
  const int64_t length = nest.rowLength();
  bool fours = shape.sharesLocal && length > 0 && length % 4 == 0;
  int64_t group = rowGroup(length, fours ? 16 : 2, shape);
  if (fours && length > 4 * group * kMostSteps) {
    fours = false;
    group = rowGroup(length, fours ? 16 : 2, shape);
  }
  RowWriter rows(writer, nest, fours ? "point" : "", group, fours);
  if (fours) rows.printer().keepUnder("step * 4 + lane");
  writer.declare(nest, rows.printer());
  const std::string text = rows.text();
  return writer.finish(text, {nest.rowCount() * group, 1}, {group, 1});
}

}  // namespace aglow::codegen
