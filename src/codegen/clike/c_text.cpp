// A function per nest: a loop over units, the values of blocks as variables in the order they stand in.
#include "codegen/clike/c_text.h"

#include <fmt/format.h>

#include "codegen/clike/nest_printer.h"

namespace aglow::codegen {

namespace {

class Printer {
public:
  explicit Printer(const nest::Nest& nest) : nest_(nest), printer_(nest, out_), outer_(printer_.outerAxes()) {}

  std::string run(const std::string& name) {
    out_.open(fmt::format("int32_t {}(void* const* p, int64_t begin, int64_t end)", name));
    for (size_t i = 0; i < nest_.operands.size(); ++i) {
      if (!printer_.uses(i)) continue;
      const nest::Operand& operand = nest_.operands[i];
      out_.line(
          fmt::format("{}{}* p{} = p[{}];", writes(operand.access) ? "" : "const ", storedName(operand.kind), i, i));
    }
    for (const nest::Expr& value : nest_.values)
      if (value.op == nest::Expr::Op::Given)
        out_.line(fmt::format("const {}* given = p[{}];", storedName(value.kind), nest_.operands.size()));
    for (size_t i = 0; i < nest_.tables.size(); ++i)
      out_.line(fmt::format("static const {} t{}[] = {};", typeName(nest_.tables[i].kind), i, printer_.tableText(i)));
    for (size_t i = 0; i < nest_.rows.size(); ++i)
      out_.line(fmt::format("{} k{}[{}];", storedName(nest_.rows[i]), i, nest_.rowLength()));
    out_.open("for (int64_t unit = begin; unit < end; ++unit)");
    unitIndices();
    for (const nest::Stage& stage : nest_.stages) printStage(stage);
    out_.close();
    out_.line("return 0;");
    out_.close();
    return out_.take();
  }

private:
  void unitIndices() {
    int64_t below = nest_.chunks();
    for (size_t axis = outer_; axis-- > 0; below *= nest_.axes[axis].extent)
      out_.line(fmt::format("const int64_t i{} = unit / {} % {};", axis, below, nest_.axes[axis].extent));
    if (nest_.chunk == 0) return;
    const int64_t extent = nest_.axes.back().extent;
    out_.line(fmt::format("const int64_t first = unit % {} * {};", nest_.chunks(), nest_.chunk));
    out_.line(fmt::format("const int64_t last = first + {0} < {1} ? first + {0} : {1};", nest_.chunk, extent));
  }

  void printBlock(const nest::Block& block) {
    printer_.values(block);
    printer_.stores(block);
  }

  void printStage(const nest::Stage& stage) {
    printBlock(stage.row);
    if (!stage.passes()) return;
    for (const int id : stage.reductions) printer_.startReduction(id);
    for (size_t axis = outer_; axis < nest_.axes.size(); ++axis) {
      const bool cut = nest_.chunk > 0;
      const std::string end = cut ? "last" : fmt::format("{}", nest_.axes[axis].extent);
      out_.open(fmt::format("for (int64_t i{0} = {1}; i{0} < {2}; ++i{0})", axis, cut ? "first" : "0", end));
    }
    printBlock(stage.each);
    for (const int id : stage.reductions) printer_.combine(id);
    for (size_t axis = outer_; axis < nest_.axes.size(); ++axis) out_.close();
  }

  const nest::Nest& nest_;
  TextBlock out_;
  NestPrinter printer_;
  size_t outer_;  // axes outside of a row
};

}  // namespace

std::string printC(const nest::Nest& nest, const std::string& name) { return Printer(nest).run(name); }

}  // namespace aglow::codegen
