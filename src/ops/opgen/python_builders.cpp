#include "ops/opgen/python_builders.h"

#include <fmt/format.h>

#include <cctype>
#include <vector>

#include "ops/all_ops.h"
#include "ops/attrs.h"

namespace aglow {

namespace {

bool isUpper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool isLower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }

// MatMul -> mat_mul, GatherND -> gather_nd, RMSNorm -> rms_norm, Col2Im -> col2im, And -> logical_and.
std::string snake(std::string_view name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool wordBegins =
        i > 0 && isUpper(name[i]) &&
        (isLower(name[i - 1]) || (isUpper(name[i - 1]) && i + 1 < name.size() && isLower(name[i + 1])));
    if (wordBegins) out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  static constexpr std::string_view kKeywords[] = {"and", "or", "xor", "not"};
  for (const std::string_view keyword : kKeywords)
    if (out == keyword) return "logical_" + out;
  return out;
}

std::string choicesText(std::string_view choices) {
  std::string out = "\"";
  for (const char c : choices) out += c == '|' ? std::string("\", \"") : std::string(1, c);
  return out + "\"";
}

struct PythonType {
  std::string hint, initial;
};

PythonType pythonType(const AttrDef& def) {
  switch (def.kind) {
    case AttrKind::Int:
      return {"int", fmt::format("{}", static_cast<int64_t>(def.number))};
    case AttrKind::Bool:
      return {"bool", def.number != 0 ? "True" : "False"};
    case AttrKind::Float:
      return {"float", fmt::format("{}", def.number)};
    case AttrKind::Ints:
      return {"Sequence[int]", "()"};
    case AttrKind::Floats:
      return {"Sequence[float]", "()"};
    case AttrKind::Enum:
      return {fmt::format("Literal[{}]", choicesText(def.choices)),
              fmt::format("\"{}\"", std::get<std::string>(defaultValue(def)))};
    case AttrKind::Word:
      return {"str", fmt::format("\"{}\"", std::get<std::string>(defaultValue(def)))};
    case AttrKind::Elem:
      break;
  }
  return {"Kind", fmt::format("\"{}\"", elemName(def.elem))};
}

// Words after each other in lines of at most `width` bytes, from the second one on indented.
std::string wrapped(const std::string& text, size_t width, const std::string& indent) {
  std::string out;
  size_t column = indent.size();
  for (size_t from = 0; from < text.size();) {
    const size_t to = std::min(text.find(' ', from), text.size());
    const size_t length = to - from;
    const bool fits = column + length + 1 <= width;
    if (!out.empty()) out += fits ? " " : "\n" + indent;
    column = fits ? column + length + 1 : indent.size() + length;
    out += text.substr(from, length);
    from = to + 1;
  }
  return out;
}

std::string documentation(const OpDef& op) {
  const std::string indent(8, ' ');
  std::string out = wrapped(std::string(op.doc), 116, indent);
  std::string more;
  if (op.out.size() > 1) {
    more += indent + "Gives ";
    for (const ResultDef& result : op.out) more += (&result == op.out.begin() ? "" : ", ") + std::string(result.name);
    more += ".\n";
  }
  for (const AttrDef& attr : op.attrs) {
    if (attr.doc.empty()) continue;
    const std::string whenEmpty =
        attr.whenEmpty.empty() ? "" : fmt::format("; \"{}\" of each if empty", attr.whenEmpty);
    more += indent + wrapped(fmt::format("{}: {}{}", attr.name, attr.doc, whenEmpty), 116, indent + "  ") + "\n";
  }
  return more.empty() ? out : out + "\n\n" + more + indent;
}

std::string method(const OpDef& op) {
  std::string params = "self", operands, letters, attrs;
  bool variadic = false;
  for (const OperandDef& in : op.in) {
    if (in.arity == Arity::Variadic) {
      params += fmt::format(", {}: Sequence[Operand]", in.name);
      operands = fmt::format("[*{}]", in.name);
      variadic = true;
    } else if (in.arity == Arity::Optional) {
      params += fmt::format(", {}: Optional[Operand] = None", in.name);
      operands += fmt::format("{}, ", in.name);
    } else {
      params += fmt::format(", {}: Operand", in.name);
      operands += fmt::format("{}, ", in.name);
    }
    letters += in.typeVar == 0 ? '-' : in.typeVar;
  }
  if (!variadic) {
    if (operands.size() > 2) operands.resize(operands.size() - 2);
    operands = fmt::format("[{}]", operands);
  }
  if (!op.attrs.empty()) params += ", *";
  for (const AttrDef& attr : op.attrs) {
    const PythonType type = pythonType(attr);
    params += fmt::format(", {}: {} = {}", attr.name, type.hint, type.initial);
    attrs += fmt::format("{}\"{}\": {}", attrs.empty() ? "" : ", ", attr.name, attr.name);
  }
  std::string result = "Value";
  if (op.out.size() > 1) {
    result = "tuple[";
    for (int i = 0; i < op.out.size(); ++i) result += i == 0 ? "Value" : ", Value";
    result += "]";
  }
  const std::string name = snake(op.name);
  const std::string call =
      wrapped(fmt::format("self._make(\"{}\", \"{}\", {}, {{{}}})", op.name, letters, operands, attrs), 96,
              std::string(12, ' '));
  std::string body;
  if (op.out.size() == 1) {
    body = fmt::format("        return {}[0]\n", call);
  } else {
    std::string names;
    for (const ResultDef& out : op.out)
      names += (names.empty() ? "" : ", ") + std::string("out_") + std::string(out.name);
    body = fmt::format("        {} = {}\n        return {}\n", names, call, names);
  }
  return fmt::format("    def {}({}) -> {}:\n        \"\"\"{}\"\"\"\n{}\n", name,
                     wrapped(params, 110, std::string(12, ' ')), result, documentation(op), body);
}

}  // namespace

std::string pythonBuilders() {
  std::string out =
      "\"\"\"One method per operator. Generated by opgen from src/ops/records.\"\"\"\n"
      "from __future__ import annotations\n\n"
      "from typing import Any, Literal, Optional, Sequence\n\n"
      "from ._values import Kind, Operand, Value\n\n\n"
      "class OpBuilders:\n"
      "    \"\"\"The operators as methods: operands first, then attributes by name.\"\"\"\n\n"
      "    def _make(self, op: str, letters: str, operands: Sequence[Optional[Operand]],\n"
      "              attrs: dict[str, Any]) -> tuple[Value, ...]:\n"
      "        raise NotImplementedError\n\n";
  for (const OpDef* op : allOps())
    if (op->kind != OpKind::Storage) out += method(*op);
  // One line end at the end.
  out.pop_back();
  return out;
}

}  // namespace aglow
