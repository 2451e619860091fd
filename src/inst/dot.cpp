// Drawing for `dot -Tsvg`.
#include "inst/dot.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "graph/dot.h"
#include "graph/syntax.h"

namespace aglow {

namespace {

std::string_view colour(const Region& region) {
  if (region.as<ConstantInit>() != nullptr) return "#e8e8e8";
  if (region.declared()) return region.isState() ? "#f6c98f" : "#ffe9b8";
  return region.as<ViewOf>() != nullptr ? "#f4f4f4" : "#cfe8cf";
}

std::string label(const Region& region) {
  std::string text = escapeDot(region.name) + "\\n" + escapeDot(region.type.text());
  if (const auto* allocated = region.as<Allocated>(); allocated != nullptr && allocated->offset >= 0)
    text += fmt::format("\\nat {}", allocated->offset);
  if (const auto* view = region.as<ViewOf>()) text += fmt::format("\\nfrom byte {}", view->offset);
  return text;
}

class Drawing {
public:
  std::string run(std::span<const Program> programs) {
    // What several programs share stands outside of their frames.
    const bool framed = programs.size() > 1;
    if (framed)
      for (const Region* region : sharedRegions(programs)) {
        const std::string id = fmt::format("s{}", shared_.size());
        shared_.emplace(region->name, id);
        box(id, *region);
      }
    for (size_t i = 0; i < programs.size(); ++i) {
      prefix_ = framed ? fmt::format("p{}", i) : "";
      if (framed) out_ += fmt::format("  subgraph cluster{} {{\n  label=\"{}\"\n", i, escapeDot(programs[i].name));
      draw(programs[i]);
      if (framed) out_ += "  }\n";
      out_ += std::exchange(edges_, {});
    }
    return "digraph aglow {\n  rankdir=TB\n  node [fontname=\"Helvetica\", style=filled]\n"
           "  edge [fontname=\"Helvetica\", fontsize=9]\n" +
           out_ + "}\n";
  }

private:
  void box(const std::string& id, const Region& region) {
    out_ += fmt::format("  {} [shape=box, fillcolor=\"{}\", label=\"{}\"]\n", id, colour(region), label(region));
  }

  std::string idOf(const Program& program, RegionId id) const {
    const auto it = program[id].declared() ? shared_.find(program[id].name) : shared_.end();
    return it != shared_.end() ? it->second : fmt::format("{}r{}", prefix_, id);
  }

  void draw(const Program& program) {
    for (size_t i = 0; i < program.regions.size(); ++i) {
      const Region& region = program.regions[i];
      const std::string id = idOf(program, static_cast<RegionId>(i));
      if (region.as<Local>() != nullptr) continue;
      if (!region.declared() || shared_.empty()) box(id, region);
      if (const auto* view = region.as<ViewOf>())
        edges_ +=
            fmt::format("  {} -> {} [style=dashed, arrowhead=none, constraint=false]\n", idOf(program, view->base), id);
    }
    std::string last;
    for (size_t i = 0; i < program.instrs.size(); ++i)
      if (!program.instrs[i].isMarker()) last = draw(program, i, last);
  }

  std::string draw(const Program& program, size_t number, const std::string& last) {
    const Instr& instr = program.instrs[number];
    const std::string id = fmt::format("{}i{}", prefix_, number);
    std::string attrs = instr.kind == Instr::Kind::Compute ? escapeDot(printAttrs(instr.attrs)) : "";
    if (!attrs.empty()) attrs = "\\n" + attrs;
    for (const Instr& step : instr.body) attrs += fmt::format("\\n{}", instrName(step));
    if (instr.plan) attrs += "\\nby " + escapeDot(instr.plan->kernel);
    out_ += fmt::format("  {} [shape=ellipse, fillcolor=\"#c6dcf4\", label=\"{}: {}{}\"]\n", id, number,
                        instrName(instr), attrs);
    if (!last.empty()) edges_ += fmt::format("  {} -> {} [style=invis]\n", last, id);
    for (const Operand& operand : instr.operands) {
      if (operand.region == kNoRegion) continue;
      const std::string region = idOf(program, operand.region);
      if (reads(operand.access))
        edges_ += fmt::format("  {} -> {} [label=\"{}\"]\n", region, id, accessName(operand.access));
      if (writes(operand.access))
        edges_ += fmt::format("  {} -> {} [label=\"{}\"]\n", id, region, accessName(operand.access));
    }
    if (instr.predicate != kNoRegion)
      edges_ += fmt::format("  {} -> {} [label=\"if\", style=dashed]\n", idOf(program, instr.predicate), id);
    return id;
  }

  std::string out_, edges_;
  std::string prefix_;  // of what belongs to one of several programs
  std::unordered_map<std::string, std::string> shared_;
};

}  // namespace

std::string drawDot(const Program& program) { return drawDot(std::span(&program, 1)); }
std::string drawDot(std::span<const Program> programs) { return Drawing().run(programs); }

}  // namespace aglow
