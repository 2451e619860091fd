// Nodes in ONNX's words, as the records say (opgen prints the table). Where no row holds, or where its form returns
// false, a node keeps its own domain.
#include "import/onnx/export_ops.h"

#include <algorithm>

#include "import/onnx/export_forms.h"
#include "ops/kind_sets.h"

namespace aglow::onnx {

namespace {

struct StandardRow {
  Op op;
  std::string_view name;  // of the ONNX operator; some forms choose it themselves
  KindSet kinds;          // of operands with a type letter (of the first, where there is none)
  bool (*write)(Form&);
};

constexpr StandardRow kRows[] = {
#define AGLOW_ROW(op, name, kinds, form) {Op::op, name, kinds, forms::form},
#include "import/onnx/export_table.inc"
#undef AGLOW_ROW
};

bool takesKinds(const StandardRow& row, const aglow::Node& node) {
  const OpDef& def = node.def();
  for (int i = 0; i < node.inputCount(); ++i) {
    const OperandDef& operand = def.in[std::min(i, def.in.size() - 1)];
    if (node.input(i) && (operand.typeVar != 0 || i == 0) && operand.kinds != kinds::bools &&
        !contains(row.kinds, node.input(i).kind()))
      return false;
  }
  return true;
}

}  // namespace

bool writeStandard(const aglow::Node& node, ExportScope& scope, Node& out) {
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const StandardRow& r) { return r.op == node.op(); });
  if (row == std::end(kRows) || !takesKinds(*row, node)) return false;
  Node standard;
  standard.name = out.name;
  standard.opType = row->name;
  Form form(node, scope, standard);
  if (!row->write(form)) return false;
  out = std::move(standard);
  return true;
}

}  // namespace aglow::onnx
