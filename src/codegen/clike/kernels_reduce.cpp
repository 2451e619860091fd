// Reductions over any axes, of rows that are long and few, and to the place of the best.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/clike/reductions.h"
#include "codegen/nest/build.h"
#include "codegen/nest/kinds.h"
#include "ops/all_ops.h"
#include "reference/axis_lines.h"

namespace aglow::codegen {

namespace {

// The axes of an operand that are reduced, or those that are not, neighbours as one.
struct Axes {
  std::vector<int64_t> extents, strides;

  int64_t elements() const {
    int64_t all = 1;
    for (const int64_t extent : extents) all *= extent;
    return all;
  }
  // Where the element with a number lies.
  std::string place(const std::string& number) const {
    std::string text;
    int64_t below = 1;
    for (size_t axis = extents.size(); axis-- > 0; below *= std::max<int64_t>(extents[axis], 1)) {
      std::string index = below == 1 ? number : fmt::format("{} / {}", number, below);
      if (axis > 0) index += fmt::format(" % {}", std::max<int64_t>(extents[axis], 1));
      text += fmt::format("{}{} * {}", text.empty() ? "" : " + ", index, strides[axis]);
    }
    return text.empty() ? "0" : text;
  }
};

struct Operands {
  Axes kept, reduced;
  bool beside = false;  // the last axis is kept

  Operands(const Shape& shape, const std::vector<int64_t>& axes) {
    const std::vector<int64_t> strides = shape.strides();
    const Axes* last = nullptr;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 1) continue;
      Axes& own = std::find(axes.begin(), axes.end(), axis) == axes.end() ? kept : reduced;
      if (last != &own) {
        own.extents.push_back(1);
        own.strides.push_back(0);
      }
      own.extents.back() *= shape[axis];
      own.strides.back() = strides[static_cast<size_t>(axis)];
      last = &own;
    }
    beside = last == &kept;
  }

  ReductionSizes sizes() const {
    return {.results = kept.elements(),
            .points = reduced.elements(),
            .beside = beside ? kept.extents.back() : 1,
            .inStep = (beside ? kept : reduced).extents.size() <= 1};
  }
};

bool onlyReduces(const nest::Nest& nest) {
  if (!nest.stages.front().each.stores.empty() || nest.reductions.empty()) return false;
  return std::all_of(nest.stages.begin() + 1, nest.stages.end(),
                     [](const nest::Stage& stage) { return !stage.passes(); });
}

ReductionSizes sizesOf(const nest::Nest& nest) {
  return {.results = nest.rowCount(),
          .points = nest.rowLength(),
          .sums = static_cast<int64_t>(nest.reductions.size()),
          .inStep = nest.innerAxes() == 1};
}

}  // namespace

int64_t reduceScratch(const Program& program, const Instr& anchor, const DeviceShape& shape) {
  const Operands x(program[anchor.inputs()[0].region].type.shape(), anchor.attrs.ints("axes"));
  return reductionScratch(x.sizes(), shape);
}

std::vector<Launch> reduceLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  if (instr.kind == Instr::Kind::Compute && reducedRow(program, instr) > 0) {
    const Result<BodyForm> form = formOf(program, bodySteps(instr));
    if (form.ok() && !form->anchored) {
      const nest::Nest nest = nest::nestOf(program, instr);
      return nestLaunches(program, instr, {&nest, 1}, shape);
    }
  }
  const KernelWriter writer(program, instr, shape);
  const std::string how = writer.attrs().word("kind");
  const ElemKind kind = writer.kindOf(0);
  const nest::Combination sum = nest::combinationOf(how, kind);
  const Operands x(writer.in(0).shape(), writer.attrs().ints("axes"));
  Reduction reduction{.sizes = x.sizes(), .sums = {sum}};
  reduction.operands = [](KernelWriter& one) { one.input(0, "x"); };
  reduction.row = fmt::format("const {} first = {};\n(void)first;\n", writer.indexType(), x.kept.place("row"));
  reduction.each = fmt::format(
      "r0 = {};", appliedText(sum.combine, sum.kind, "r0",
                              elementText(kind, sum.kind, fmt::format("x[first + {}]", x.reduced.place("at")))));
  reduction.finish = [&](KernelWriter& one) {
    std::string text = one.resultIndices("point");
    if (how == "mean") {
      const int64_t count = reduction.sizes.points;
      const uint64_t divisor =
          isFloat(sum.kind) ? std::bit_cast<uint64_t>(static_cast<double>(count)) : static_cast<uint64_t>(count);
      text += fmt::format("r0 = {};\n", appliedText(Scalar::Div, sum.kind, "r0", numberText(sum.kind, divisor)));
    }
    return text + fmt::format("const {} given = r0;\n", typeName(sum.kind)) + one.epilogue(sum.kind);
  };
  return reductionLaunches(writer, reduction);
}

namespace {

ReductionSizes sizesOf(const AxisLines& lines) {
  return {.results = lines.outer * lines.stride, .points = lines.extent, .beside = lines.stride, .sums = 2};
}

}  // namespace

int64_t argReduceScratch(const Program& program, const Instr& anchor, const DeviceShape& shape) {
  const Shape& x = program[anchor.inputs()[0].region].type.shape();
  return reductionScratch(sizesOf(AxisLines(x, anchor.attrs.integer("axis"))), shape);
}

// The best so far and where it is, which is -1 as long as there is none.
std::vector<Launch> argReduceLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  const KernelWriter writer(program, instr, shape);
  const AxisLines lines(writer.in(0).shape(), writer.attrs().integer("axis"));
  const ElemKind computed = nest::computedKind(writer.kindOf(0));
  const ElemKind places = writer.indexType() == "int32_t" ? ElemKind::Int32 : ElemKind::Int64;
  const bool largest = writer.attrs().word("kind") == "max", last = writer.attrs().flag("last");
  // NaN wins over all that is none.
  const auto lt = [&](const char* a, const char* b) { return appliedText(Scalar::Lt, computed, a, b); };
  const auto eq = [&](const char* a, const char* b) { return appliedText(Scalar::Eq, computed, a, b); };
  const auto isNan = [&](const char* a) { return appliedText(Scalar::IsNan, computed, a); };
  const std::string wins = fmt::format("r1 < 0 || {} || ({} && {}) || (({} || ({} && {})) && i {} r1)",
                                       largest ? lt("r0", "value") : lt("value", "r0"), isNan("value"), eq("r0", "r0"),
                                       eq("value", "r0"), isNan("value"), isNan("r0"), last ? ">" : "<");
  Reduction reduction{.sizes = sizesOf(lines)};
  reduction.sums = {{Scalar::Max, computed, 0}, {Scalar::Max, places, ~uint64_t{0}}};
  reduction.join = [&](const std::vector<std::string>& others) {
    return fill(
        R"({
const $T value = $value;
const $I i = $i;
if (i >= 0 && ($wins)) {
r0 = value;
r1 = i;
}
}
)",
        {{"T", typeName(computed)}, {"I", typeName(places)}, {"value", others[0]}, {"i", others[1]}, {"wins", wins}});
  };
  reduction.operands = [](KernelWriter& one) { one.input(0, "x"); };
  reduction.row = fmt::format("const {0} first = row / {1} * {2} + row % {1};\n(void)first;\n", writer.indexType(),
                              lines.stride, lines.stride * lines.extent);
  reduction.each =
      reduction.join({elementText(writer.kindOf(0), computed, fmt::format("x[first + at * {}]", lines.stride)), "at"});
  reduction.finish = [](KernelWriter& one) {
    return "const int64_t given = r1;\n" + one.resultIndices("point") + one.epilogue();
  };
  return reductionLaunches(writer, reduction);
}

int64_t nestScratch(const Program& program, const Instr& instr, const DeviceShape& shape) {
  const auto reduces = [](const Instr& step) { return opOf(step.attrs.op()) == Op::Reduce; };
  if (std::ranges::none_of(bodyOf(instr), reduces)) return 0;
  const nest::Nest nest = nest::nestOf(program, instr);
  return onlyReduces(nest) ? reductionScratch(sizesOf(nest), shape) : 0;
}

std::vector<Launch> partLaunches(const KernelWriter& writer, const nest::Nest& nest) {
  if (!onlyReduces(nest)) return {};
  const ReductionCut cut = reductionCut(sizesOf(nest), writer.shape());
  if (cut.parts == 1 && (writer.shape().sharesLocal || cut.items() == 1)) return {};
  const auto written = [&](auto&& write) {
    TextBlock text;
    NestPrinter printer(nest, text);
    write(printer);
    return text.take();
  };
  Reduction reduction{.sizes = sizesOf(nest)};
  const size_t outer = nest.axes.size() - static_cast<size_t>(nest.innerAxes());
  for (size_t axis = 0; axis < nest.axes.size(); ++axis)
    (axis < outer ? reduction.results : reduction.points).push_back(nest.axes[axis].extent);
  for (const nest::Reduction& sum : nest.reductions) reduction.sums.push_back({sum.combine, sum.kind, sum.start});
  reduction.operands = [&](KernelWriter& one) {
    TextBlock none;
    one.declare(nest, NestPrinter(nest, none));
  };
  const nest::Stage& pass = nest.stages.front();
  reduction.row = written([&](NestPrinter& printer) { printer.values(pass.row); });
  reduction.each = written([&](NestPrinter& printer) {
    printer.values(pass.each);
    for (const int id : pass.reductions) printer.combine(id);
  });
  const std::string finish = written([&](NestPrinter& printer) {
    printer.stores(pass.row);
    for (size_t i = 1; i < nest.stages.size(); ++i) {
      printer.values(nest.stages[i].row);
      printer.stores(nest.stages[i].row);
    }
  });
  reduction.finish = [&](KernelWriter&) { return finish; };
  return reductionLaunches(writer, reduction);
}

}  // namespace aglow::codegen
