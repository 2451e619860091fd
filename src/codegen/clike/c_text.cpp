// A function per nest: a loop over units, the values of blocks as variables in the order they stand in.
#include "codegen/clike/c_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "codegen/nest/build.h"
#include "codegen/nest/kinds.h"
#include "codegen/nest/scalars.h"
#include "support/quote.h"

namespace aglow::codegen {

namespace {

using enum ElemKind;
using nest::Expr;
using nest::isReal;

// Of a variable; what lies in memory differs for bool alone.
std::string typeName(ElemKind kind) {
  if (kind == Bool) return "bool";
  if (isReal(kind)) return kind == Float32 ? "float" : "double";
  return fmt::format("{}int{}_t", isSigned(kind) ? "" : "u", 8 * elemBytes(kind));
}
std::string storedName(ElemKind kind) { return kind == Bool ? "uint8_t" : typeName(kind); }

std::string realText(double value, ElemKind kind) {
  if (value != value) return "NAN";
  if (value - value != 0) return value > 0 ? "INFINITY" : "(-INFINITY)";
  const std::string text =
      kind == Float32 ? fmt::format("{:#}f", static_cast<float>(value)) : fmt::format("{:#}", value);
  return value < 0 ? fmt::format("({})", text) : text;
}

std::string numberText(ElemKind kind, uint64_t bits) {
  if (isReal(kind)) return realText(std::bit_cast<double>(bits), kind);
  const int unused = 64 - 8 * elemBytes(kind);
  if (!isSigned(kind)) return fmt::format("(({})UINT64_C({}))", typeName(kind), bits << unused >> unused);
  const int64_t number = static_cast<int64_t>(bits << unused) >> unused;
  return number == INT64_MIN ? "INT64_MIN" : fmt::format("(({})INT64_C({}))", typeName(kind), number);
}

// The struct narrow_float of a kind.
std::string formatText(ElemKind kind) {
  const FloatFormat f = nest::narrowFormat(kind);
  return fmt::format("(struct narrow_float){{{}, {}, {}, {}, {{{}, {}}}, {{{}, {}}}}}", f.mantissaBits, f.bias,
                     f.signBit(), f.largest(), f.overflow(false), f.overflow(true), f.nan(false), f.nan(true));
}

class Printer {
public:
  explicit Printer(const nest::Nest& nest)
      : nest_(nest), outer_(nest.axes.size() - static_cast<size_t>(nest.innerAxes())) {}

  std::string run(const std::string& name) {
    open(fmt::format("int32_t {}(void* const* p, int64_t begin, int64_t end)", name));
    for (size_t i = 0; i < nest_.operands.size(); ++i) {
      if (std::ranges::count(nest_.accesses, static_cast<int>(i), &nest::Access::operand) == 0) continue;
      const nest::Operand& operand = nest_.operands[i];
      line(fmt::format("{}{}* p{} = p[{}];", writes(operand.access) ? "" : "const ", storedName(operand.kind), i, i));
    }
    for (const Expr& value : nest_.values)
      if (value.op == Expr::Op::Given)
        line(fmt::format("const {}* given = p[{}];", storedName(value.kind), nest_.operands.size()));
    for (size_t i = 0; i < nest_.tables.size(); ++i) {
      std::string numbers;
      for (const double number : nest_.tables[i].values)
        numbers += (numbers.empty() ? "" : ", ") +
                   (isReal(nest_.tables[i].kind) ? realText(number, nest_.tables[i].kind) : fmt::format("{}", number));
      line(fmt::format("static const {} t{}[] = {{{}}};", typeName(nest_.tables[i].kind), i, numbers));
    }
    for (size_t i = 0; i < nest_.rows.size(); ++i)
      line(fmt::format("{} k{}[{}];", storedName(nest_.rows[i]), i, nest_.rowLength()));
    open("for (int64_t unit = begin; unit < end; ++unit)");
    unitIndices();
    for (const nest::Stage& stage : nest_.stages) printStage(stage);
    close();
    line("return 0;");
    close();
    return std::move(out_);
  }

private:
  void line(std::string_view text) { out_ += fmt::format("{:{}}{}\n", "", 2 * depth_, text); }
  void open(std::string_view text) {
    line(fmt::format("{} {{", text));
    ++depth_;
  }
  void close() { out_ += fmt::format("{:{}}}}\n", "", 2 * --depth_); }

  void unitIndices() {
    int64_t below = nest_.chunks();
    for (size_t axis = outer_; axis-- > 0; below *= nest_.axes[axis].extent)
      line(fmt::format("const int64_t i{} = unit / {} % {};", axis, below, nest_.axes[axis].extent));
    if (nest_.chunk == 0) return;
    const int64_t extent = nest_.axes.back().extent;
    line(fmt::format("const int64_t first = unit % {} * {};", nest_.chunks(), nest_.chunk));
    line(fmt::format("const int64_t last = first + {0} < {1} ? first + {0} : {1};", nest_.chunk, extent));
  }

  void printStage(const nest::Stage& stage) {
    printBlock(stage.row);
    if (stage.each.empty()) return;
    for (const int id : stage.reductions) {
      const nest::Reduction& r = nest_.reductions[static_cast<size_t>(id)];
      line(fmt::format("{} r{} = {};", typeName(r.kind), id, numberText(r.kind, r.start)));
    }
    for (size_t axis = outer_; axis < nest_.axes.size(); ++axis) {
      const bool cut = nest_.chunk > 0;
      const std::string end = cut ? "last" : fmt::format("{}", nest_.axes[axis].extent);
      open(fmt::format("for (int64_t i{0} = {1}; i{0} < {2}; ++i{0})", axis, cut ? "first" : "0", end));
    }
    printBlock(stage.each);
    for (const int id : stage.reductions) {
      const nest::Reduction& r = nest_.reductions[static_cast<size_t>(id)];
      line(fmt::format("r{} = {};", id, apply(r.combine, r.kind, fmt::format("r{}", id), value(r.value), "")));
    }
    for (size_t axis = outer_; axis < nest_.axes.size(); ++axis) close();
  }

  void printBlock(const nest::Block& block) {
    for (int id = block.begin; id < block.end; ++id) {
      const Expr& e = nest_.value(id);
      if (e.op != Expr::Op::Number) line(fmt::format("const {} v{} = {};", typeName(e.kind), id, expression(e)));
    }
    for (const nest::Store& store : block.stores)
      line(fmt::format("{} = {};", store.row >= 0 ? kept(store.row) : element(store.access), value(store.value)));
  }

  std::string value(int id) const {
    if (id < 0) return "";
    const Expr& e = nest_.value(id);
    return e.op == Expr::Op::Number ? numberText(e.kind, e.number) : fmt::format("v{}", id);
  }

  // offset + sum of stride * index
  static std::string index(std::span<const int64_t> strides, int64_t offset = 0) {
    std::string text = offset == 0 ? "" : fmt::format("{}", offset);
    for (size_t i = 0; i < strides.size(); ++i) {
      if (strides[i] == 0) continue;
      if (!text.empty()) text += " + ";
      text += strides[i] == 1 ? fmt::format("i{}", i) : fmt::format("{} * i{}", strides[i], i);
    }
    return text.empty() ? "0" : text;
  }

  std::string element(int access) const {
    const nest::Access& a = nest_.accesses[static_cast<size_t>(access)];
    const std::string place = index(a.strides, a.offset);
    return a.table >= 0 ? fmt::format("t{}[{}]", a.table, place) : fmt::format("p{}[{}]", a.operand, place);
  }

  // The number of the point among those of the axes from `first` on.
  std::string position(size_t first) const {
    std::vector<int64_t> strides(nest_.axes.size());
    int64_t below = 1;
    for (size_t i = strides.size(); i-- > first; below *= nest_.axes[i].extent) strides[i] = below;
    return index(strides);
  }
  std::string kept(int row) const { return fmt::format("k{}[{}]", row, position(outer_)); }

  std::string expression(const Expr& e) const {
    using enum Expr::Op;
    if (e.op == Load) return e.kind == Bool ? element(e.a) + " != 0" : element(e.a);
    if (e.op == Kept) return kept(e.a);
    if (e.op == Reduced) return fmt::format("r{}", e.a);
    if (e.op == Given) return fmt::format("given[{}]", position(0));
    if (e.op == Lookup) return fmt::format("t{}[(uint8_t){}]", e.b, value(e.a));
    if (e.op == Convert) return convert(e, nest_.value(e.a).kind, value(e.a));
    const ElemKind kind = nest_.value(e.scalar == Scalar::Select ? e.b : e.a).kind;
    return apply(e.scalar, kind, value(e.a), value(e.b), value(e.c));
  }

  static std::string convert(const Expr& e, ElemKind from, const std::string& x) {
    if (e.kind == Bool) return x + " != 0";
    if (from == Float8E8M0) return fmt::format("(float)widen_scale({})", x);
    if (e.kind == Float8E8M0)
      return fmt::format("narrow_scale({}, {:d}, {})", x, e.saturate, static_cast<int>(e.rounding));
    if (isFloat(from) && !isReal(from)) return fmt::format("(float)widen({}, {})", x, formatText(from));
    if (isFloat(e.kind) && !isReal(e.kind))
      return fmt::format("({})narrow({}, {}, {:d})", typeName(e.kind), x, formatText(e.kind), e.saturate);
    if (isReal(from) && isInteger(e.kind)) return fmt::format("{}_of({})", elemName(e.kind), x);
    const int unused = isInteger(e.kind) ? 8 * elemBytes(e.kind) - elemInfo(e.kind).bits : 0;
    if (unused == 0) return fmt::format("({}){}", typeName(e.kind), x);
    return fmt::format("({0})(({0})((uint64_t){1} << {2}) >> {2})", typeName(e.kind), x, unused);
  }

  static std::string apply(Scalar op, ElemKind kind, const std::string& x, const std::string& y, const std::string& z) {
    if (op == Scalar::Select) return fmt::format("{} ? {} : {}", x, y, z);
    if (op == Scalar::IsNan) return fmt::format("{} != {}", x, x);
    const nest::ScalarInfo& info = nest::scalarInfo(op);
    const std::string_view c = isReal(kind) ? info.cOfReals : info.cOfIntegers;
    if (!c.empty() && std::ispunct(c[0]) != 0)
      return y.empty() ? fmt::format("{}{}", c, x) : fmt::format("{} {} {}", x, c, y);
    const std::string name = c.empty() ? fmt::format("{}_{}", info.name, elemName(kind))
                                       : fmt::format("{}{}", c, kind == Float32 ? "f" : "");
    return y.empty() ? fmt::format("{}({})", name, x) : fmt::format("{}({}, {})", name, x, y);
  }

  const nest::Nest& nest_;
  size_t outer_;  // axes outside of a row
  int depth_ = 0;
  std::string out_;
};

}  // namespace

std::string printC(const nest::Nest& nest, const std::string& name) { return Printer(nest).run(name); }

std::string printC(std::span<const Program> programs) {
  std::string out(cPrelude());
  int number = 0;
  for (const Program& program : programs)
    for (const Instr& instr : program.instrs)
      if (const std::optional<nest::Nest> nest = nest::nestIn(program, instr))
        out += fmt::format("\n// {}\n{}", quoted(instr.origin), printC(*nest, fmt::format("nest_{}", number++)));
  return out;
}

}  // namespace aglow::codegen
