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
  if (region.as<PlaceholderInit>() != nullptr) return fmt::format("placeholder {}", type);
  if (const auto* state = region.as<StateInit>())
    return fmt::format("state {} = {}", type, constants.print(state->initial));
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

// by tiles units 8 scratch 4096 epilogue [1, 2, 49, 16] not matvec "needs at most 4 rows, has 49"
void printPlan(std::string& out, const Plan& plan) {
  const auto to = std::back_inserter(out);
  fmt::format_to(to, " by {}", plan.kernel);
  if (plan.units != 1) fmt::format_to(to, " units {}", plan.units);
  if (plan.scratchBytes != 0) fmt::format_to(to, " scratch {}", plan.scratchBytes);
  if (plan.epilogue) fmt::format_to(to, " epilogue [{}]", fmt::join(*plan.epilogue, ", "));
  if (plan.cut)
    fmt::format_to(to, " cut {} parts [{}, {}] outer [{}]", plan.cut->axis, plan.cut->images, plan.cut->parts,
                   fmt::join(plan.cut->outer, ", "));
  for (const Refusal& refusal : plan.refused)
    fmt::format_to(to, " not {} {}", refusal.kernel, printString(refusal.reason));
}

// An instruction is named after its first operand's region unless it says otherwise.
void printLine(std::string& out, const Program& program, const Instr& instr, std::string_view indent) {
  fmt::format_to(std::back_inserter(out), "{}{}{}", indent,
                 instr.beside    ? "beside "
                 : instr.chained ? "chained "
                                 : "",
                 print(program, instr));
  if (!instr.isMarker() && instr.origin != program[instr.operands[0].region].name)
    out += " from " + printString(instr.origin);
  if (instr.plan) printPlan(out, *instr.plan);
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

// (@in %x, @out %y)
std::string signature(const Program& program) {
  std::string out;
  for (const Region& region : program.regions)
    if (const auto* placeholder = region.as<PlaceholderInit>())
      out += fmt::format("{}@{} {}", out.empty() ? "" : ", ", accessName(placeholder->access),
                         printName("%", region.name));
  return "(" + out + ")";
}

}  // namespace

std::string print(std::span<const Program> programs, BlobStore* blobs, std::vector<int>* lines) {
  std::string out = "declare {\n";
  ConstantText constants(blobs);
  for (const Region* region : sharedRegions(programs))
    fmt::format_to(std::back_inserter(out), "  {} = {}\n", printName("%", region->name),
                   declaration(*region, constants));
  out += "}\n";
  auto line = std::count(out.begin(), out.end(), '\n') + 1;
  for (const Program& program : programs) {
    fmt::format_to(std::back_inserter(out), "program {}{}", printName("@", program.name), signature(program));
    if (program.placed()) fmt::format_to(std::back_inserter(out), " arena {}", program.arenaBytes);
    out += " {\n";
    ++line;
    for (const Instr& instr : program.instrs) {
      if (lines != nullptr) lines->push_back(static_cast<int>(line));
      const size_t before = out.size();
      printLine(out, program, instr, "  ");
      if (instr.kind == Instr::Kind::Fused) printBody(out, program, instr);
      out += "\n";
      line += std::count(out.begin() + static_cast<ptrdiff_t>(before), out.end(), '\n');
    }
    out += "}\n";
    ++line;
  }
  return out;
}

std::string print(const Program& program, BlobStore* blobs, std::vector<int>* lines) {
  return print(std::span(&program, 1), blobs, lines);
}

}  // namespace aglow
