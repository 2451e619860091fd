// Drawing for `dot -Tsvg`.
#include "inst/dot.h"

#include <fmt/format.h>

#include "graph/dot.h"
#include "graph/syntax.h"

namespace aglow {

namespace {

std::string_view colour(const Region& region) {
  if (region.as<ConstantInit>() != nullptr) return "#e8e8e8";
  if (region.declared()) return "#ffe9b8";
  return region.as<ViewOf>() != nullptr ? "#f4f4f4" : "#cfe8cf";
}

std::string label(const Region& region) {
  std::string text = escapeDot(region.name) + "\\n" + escapeDot(region.type.text());
  if (const auto* allocated = region.as<Allocated>(); allocated != nullptr && allocated->offset >= 0)
    text += fmt::format("\\nat {}", allocated->offset);
  if (const auto* view = region.as<ViewOf>()) text += fmt::format("\\nfrom byte {}", view->offset);
  return text;
}

}  // namespace

std::string drawDot(const Program& program) {
  std::string out =
      "digraph aglow {\n  rankdir=TB\n  node [fontname=\"Helvetica\", style=filled]\n"
      "  edge [fontname=\"Helvetica\", fontsize=9]\n";
  for (size_t i = 0; i < program.regions.size(); ++i) {
    const Region& region = program.regions[i];
    if (region.as<Local>() != nullptr) continue;
    out += fmt::format("  r{} [shape=box, fillcolor=\"{}\", label=\"{}\"]\n", i, colour(region), label(region));
    if (const auto* view = region.as<ViewOf>())
      out += fmt::format("  r{} -> r{} [style=dashed, arrowhead=none, constraint=false]\n", view->base, i);
  }
  size_t last = program.instrs.size();
  for (size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    if (instr.isMarker()) continue;
    std::string attrs = instr.kind == Instr::Kind::Compute ? escapeDot(printAttrs(instr.attrs)) : "";
    if (!attrs.empty()) attrs = "\\n" + attrs;
    for (const Instr& step : instr.body) attrs += fmt::format("\\n{}", instrName(step));
    out += fmt::format("  i{} [shape=ellipse, fillcolor=\"#c6dcf4\", label=\"{}: {}{}\"]\n", i, i, instrName(instr),
                       attrs);
    if (last < i) out += fmt::format("  i{} -> i{} [style=invis]\n", last, i);
    last = i;
    for (const Operand& operand : instr.operands) {
      if (operand.region == kNoRegion) continue;
      if (reads(operand.access))
        out += fmt::format("  r{} -> i{} [label=\"{}\"]\n", operand.region, i, accessName(operand.access));
      if (writes(operand.access))
        out += fmt::format("  i{} -> r{} [label=\"{}\"]\n", i, operand.region, accessName(operand.access));
    }
    if (instr.predicate != kNoRegion)
      out += fmt::format("  r{} -> i{} [label=\"if\", style=dashed]\n", instr.predicate, i);
  }
  return out + "}\n";
}

}  // namespace aglow
