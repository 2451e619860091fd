// Programs as text: the declared regions, then the instructions with the regions they begin.
#include <fmt/format.h>

#include <algorithm>

#include <iterator>

#include "graph/syntax.h"
#include "inst/text.h"

namespace aglow {

namespace {

std::string regionName(const Program& program, RegionId id) {
  return id == kNoRegion ? "_" : printName("%", program[id].name);
}

std::string declaration(const Region& region, ConstantText& constants) {
  const std::string type = region.type.text();
  if (const auto* constant = region.as<ConstantInit>())
    return fmt::format("constant {} = {}", type, constants.print(constant->bytes));
  if (const auto* placeholder = region.as<PlaceholderInit>())
    return fmt::format("placeholder @{} {}", accessName(placeholder->access), type);
  if (const auto* splat = region.as<SplatInit>()) return fmt::format("splat {} = {}", type, printReal(splat->value));
  const auto* xavier = region.as<XavierInit>();
  return fmt::format("xavier {} fan {} seed {}", type, xavier->fanIn, xavier->seed);
}

// alloc, dealloc and tensorview define or end a region instead of naming operands.
std::string marker(const Program& program, const Instr& instr) {
  const RegionId id = instr.operands[0].region;
  const Region& region = program[id];
  const std::string name = regionName(program, id);
  if (instr.kind == Instr::Kind::Dealloc) return "dealloc " + name;
  if (const auto* view = region.as<ViewOf>())
    return fmt::format("{} = tensorview {} at {} : {}", name, regionName(program, view->base), view->offset,
                       region.type.text());
  const int64_t offset = region.as<Allocated>()->offset;
  const std::string place = offset == Allocated::kUnplaced ? "" : fmt::format(" at {}", offset);
  return fmt::format("{} = alloc {}{}", name, region.type.text(), place);
}

}  // namespace

std::string print(const Program& program, const Instr& instr) {
  if (instr.isMarker()) return marker(program, instr);
  std::string out(instrName(instr));
  std::string_view separator = " ";
  for (const Operand& operand : instr.operands) {
    out += fmt::format("{}@{} {}", separator, accessName(operand.access), regionName(program, operand.region));
    separator = ", ";
  }
  if (instr.kind == Instr::Kind::Compute) {
    if (const std::string attrs = printAttrs(instr.attrs); !attrs.empty()) out += " " + attrs;
  } else if (instr.kind == Instr::Kind::CopyStart || instr.kind == Instr::Kind::CopyWait) {
    out += fmt::format(" token {}", instr.token);
  }
  if (instr.predicate != kNoRegion) out += " if " + regionName(program, instr.predicate);
  return out;
}

namespace {

// An instruction is named after its first operand's region unless it says otherwise.
void printLine(std::string& out, const Program& program, const Instr& instr, std::string_view indent) {
  fmt::format_to(std::back_inserter(out), "{}{}", indent, print(program, instr));
  if (!instr.isMarker() && instr.origin != program[instr.operands[0].region].name)
    out += " from " + printString(instr.origin);
}

void printBody(std::string& out, const Program& program, const Instr& fused) {
  out += " {\n";
  for (const Instr& instr : fused.body) {
    for (const Operand& operand : instr.operands) {
      if (operand.access != Access::Out || operand.region == kNoRegion ||
          program[operand.region].as<Local>() == nullptr)
        continue;
      fmt::format_to(std::back_inserter(out), "    {} = local {}\n", regionName(program, operand.region),
                     program[operand.region].type.text());
    }
    printLine(out, program, instr, "    ");
    out += "\n";
  }
  out += "  }";
}

}  // namespace

std::string print(const Program& program, BlobStore* blobs, std::vector<int>* lines) {
  std::string out = "declare {\n";
  ConstantText constants(blobs);
  for (const Region& region : program.regions)
    if (region.declared())
      fmt::format_to(std::back_inserter(out), "  {} = {}\n", printName("%", region.name),
                     declaration(region, constants));
  fmt::format_to(std::back_inserter(out), "}}\nprogram {}", printName("@", program.name));
  if (program.placed()) fmt::format_to(std::back_inserter(out), " arena {}", program.arenaBytes);
  out += " {\n";
  auto line = std::count(out.begin(), out.end(), '\n') + 1;
  for (const Instr& instr : program.instrs) {
    if (lines != nullptr) lines->push_back(static_cast<int>(line));
    const size_t before = out.size();
    printLine(out, program, instr, "  ");
    if (instr.kind == Instr::Kind::Fused) printBody(out, program, instr);
    out += "\n";
    line += std::count(out.begin() + static_cast<ptrdiff_t>(before), out.end(), '\n');
  }
  return out + "}\n";
}

}  // namespace aglow
