// What an operator reads and writes, as those who choose its kernel see it: of a node or of an instruction.
#pragma once

#include <vector>

#include "graph/node.h"
#include "inst/program.h"

namespace aglow {

// Types in the record's order, null where an operand is absent or a result that may be absent has no reader.
struct OperandTypes {
  std::vector<const Type*> in, out;

  explicit OperandTypes(const Node& node) {
    for (int i = 0; i < node.inputCount(); ++i) in.push_back(node.input(i) ? &node.input(i).type() : nullptr);
    for (int i = 0; i < node.resultCount(); ++i) {
      const bool absent = mayBeAbsent(node.def(), static_cast<size_t>(i)) && node.useCount(i) == 0;
      out.push_back(absent ? nullptr : &node.type(i));
    }
  }
  OperandTypes(const Program& program, const Instr& instr) {
    const auto typeOf = [&](const Operand& o) { return o.region == kNoRegion ? nullptr : &program[o.region].type; };
    for (const Operand& operand : instr.inputs()) in.push_back(typeOf(operand));
    for (const Operand& operand : instr.results()) out.push_back(typeOf(operand));
  }
};

}  // namespace aglow
