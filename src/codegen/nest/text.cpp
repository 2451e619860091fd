#include "codegen/nest/text.h"

#include <fmt/format.h>

#include <fmt/ranges.h>
#include <array>

#include <cstring>

#include "codegen/nest/build.h"
#include "codegen/nest/scalars.h"
#include "support/quote.h"

namespace aglow::nest {

namespace {

std::string numberText(ElemKind kind, uint64_t bits) {
  if (kind == ElemKind::Bool) return bits != 0 ? "true" : "false";
  if (kind == ElemKind::Float64) return fmt::format("{}", std::bit_cast<double>(bits));
  if (kind == ElemKind::Float32) return fmt::format("{}", static_cast<float>(std::bit_cast<double>(bits)));
  if (isFloat(kind)) return fmt::format("{}", floatFromBits(kind, bits));
  if (!isSigned(kind)) return fmt::format("{}", bits);
  const int unused = 64 - 8 * elemBytes(kind);
  return fmt::format("{}", static_cast<int64_t>(bits << unused) >> unused);
}

std::string_view roundingText(ScaleRounding rounding) {
  return rounding == ScaleRounding::Up ? " up" : rounding == ScaleRounding::Down ? " down" : "";
}

std::string exprText(const Expr& e) {
  switch (e.op) {
    case Expr::Op::Load:
      return fmt::format("load a{}", e.a);
    case Expr::Op::Number:
      return numberText(e.kind, e.number);
    case Expr::Op::Apply: {
      std::string text(scalarInfo(e.scalar).name);
      for (const int operand : {e.a, e.b, e.c})
        if (operand >= 0) text += fmt::format(" %{}", operand);
      return text;
    }
    case Expr::Op::Convert:
      return fmt::format("convert %{}{}{}", e.a, e.saturate ? " saturate" : "", roundingText(e.rounding));
    case Expr::Op::Kept:
      return fmt::format("kept k{}", e.a);
    case Expr::Op::Reduced:
      return fmt::format("reduced r{}", e.a);
    case Expr::Op::Given:
      return "given";
    case Expr::Op::Lookup:
      return fmt::format("lookup t{} %{}", e.b, e.a);
  }
  return "?";
}

void printBlock(const Nest& nest, const Block& block, std::string& out) {
  for (int id = block.begin; id < block.end; ++id)
    out += fmt::format("    %{} {} = {}\n", id, elemName(nest.value(id).kind), exprText(nest.value(id)));
  for (const Store& store : block.stores)
    out += store.row >= 0 ? fmt::format("    keep %{} in k{}\n", store.value, store.row)
                          : fmt::format("    store %{} to a{}\n", store.value, store.access);
}

}  // namespace

std::string print(const Nest& nest) {
  std::string out = "nest {\n  axes";
  for (const Axis& axis : nest.axes)
    out += fmt::format(" {}{}", axis.role == Axis::Role::Row ? "row " : "", axis.extent);
  out += fmt::format("\n  units {}", nest.units());
  if (nest.chunk > 0) out += fmt::format(" of {}", nest.chunk);
  out += "\n";
  for (size_t i = 0; i < nest.operands.size(); ++i)
    out += fmt::format("  p{} {} {}[{}]\n", i, accessName(nest.operands[i].access), elemName(nest.operands[i].kind),
                       nest.operands[i].elements);
  for (size_t i = 0; i < nest.tables.size(); ++i)
    out += fmt::format("  t{} {} {{{}}}\n", i, elemName(nest.tables[i].kind), fmt::join(nest.tables[i].values, ", "));
  for (size_t i = 0; i < nest.accesses.size(); ++i) {
    const Access& a = nest.accesses[i];
    out += fmt::format("  a{} = {}{}[{}]", i, a.table >= 0 ? "t" : "p", a.table >= 0 ? a.table : a.operand,
                       fmt::join(a.strides, ", "));
    out += a.offset != 0 ? fmt::format(" + {}\n", a.offset) : "\n";
  }
  for (size_t i = 0; i < nest.rows.size(); ++i)
    out += fmt::format("  k{} {}[{}]\n", i, elemName(nest.rows[i]), nest.rowLength());
  for (const Stage& stage : nest.stages) {
    if (!stage.row.empty()) {
      out += "  row:\n";
      printBlock(nest, stage.row, out);
    }
    if (!stage.passes()) continue;
    out += "  each:\n";
    printBlock(nest, stage.each, out);
    for (const int id : stage.reductions) {
      const Reduction& r = nest.reductions[static_cast<size_t>(id)];
      static constexpr std::array kTrust = {"", " if finite", " if normal"};
      out += fmt::format("    r{} {} = reduce {} %{} from {}", id, elemName(r.kind), scalarInfo(r.combine).name,
                         r.value, numberText(r.kind, r.start));
      if (r.narrow >= 0) out += fmt::format(" or %{}{}", r.narrow, kTrust.at(static_cast<size_t>(r.trust)));
      out += '\n';
    }
  }
  return out + "}\n";
}

std::string printNests(std::span<const Program> programs) {
  std::string out;
  for (const Program& program : programs)
    for (const Instr& instr : program.instrs)
      if (const std::optional<Nest> nest = nestIn(program, instr))
        out += fmt::format("// {}\n{}", quoted(instr.origin), print(*nest));
  return out;
}

}  // namespace aglow::nest
