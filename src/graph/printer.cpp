// Graphs to text.
#include <fmt/format.h>

#include "graph/syntax.h"
#include "graph/text.h"

namespace aglow {

namespace {

std::string valueText(Value value) {
  if (!value) return "_";
  if (value.node->isStorage()) return printName("@", value.node->name());
  std::string out = printName("%", value.node->name());
  if (value.index != 0) out += fmt::format(":{}", value.index);
  return out;
}

void printStorage(const Node& node, ConstantText& constants, std::string& out) {
  const Tensor* bytes = initialBytes(node);
  const std::string_view kind = node.op() == Op::Constant ? "constant" : bytes != nullptr ? "state" : "placeholder";
  out += fmt::format("{} {} : {}", kind, printName("@", node.name()), node.type().text());
  if (bytes != nullptr) out += " = " + constants.print(*bytes);
}

void printNode(const Node& node, std::string& out) {
  out += fmt::format("{} = {}(", printName("%", node.name()), node.def().name);
  int operands = node.inputCount();
  while (operands > 0 && !node.input(operands - 1)) --operands;
  for (int i = 0; i < operands; ++i) out += (i == 0 ? "" : ", ") + valueText(node.input(i));
  out += ")";
  if (const std::string attrs = printAttrs(node.attrs()); !attrs.empty()) out += " " + attrs;
  if (node.predicate()) out += " if " + valueText(node.predicate());
  for (int i = 0; i < node.resultCount(); ++i) out += (i == 0 ? " : " : ", ") + node.type(i).text();
}

void printFunction(const Function& function, std::string_view indent, std::string& out) {
  out += fmt::format("{}func {} {{\n", indent, printName("@", function.name()));
  for (const auto& node : function.nodes()) {
    out += fmt::format("{}  ", indent);
    printNode(*node, out);
    out += "\n";
  }
  out += fmt::format("{}}}\n", indent);
}

}  // namespace

std::string print(const Module& module, BlobStore* blobs) {
  ConstantText constants(blobs);
  std::string out = "module {\n";
  for (const auto& node : module.storage()) {
    out += "  ";
    printStorage(*node, constants, out);
    out += "\n";
  }
  for (const auto& function : module.functions()) printFunction(*function, "  ", out);
  return out + "}\n";
}

std::string print(const Function& function) {
  std::string out;
  printFunction(function, "", out);
  return out;
}

std::string print(const Node& node) {
  std::string out;
  ConstantText constants(static_cast<BlobStore*>(nullptr));
  if (node.isStorage())
    printStorage(node, constants, out);
  else
    printNode(node, out);
  return out;
}

}  // namespace aglow
