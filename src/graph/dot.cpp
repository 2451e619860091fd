// Drawing for `dot -Tsvg`. Names may be any bytes; the drawing is valid UTF-8.
#include "graph/dot.h"

#include <fmt/format.h>

#include <unordered_map>

#include "graph/syntax.h"
#include "support/utf8.h"

namespace aglow {

std::string escapeDot(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const size_t length = utf8Length(text, i);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (length == 0 || static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += text.substr(i, length);
    i += std::max<size_t>(length, 1);
  }
  return out;
}

namespace {

bool isState(const Node& node) {
  return node.op() == Op::Placeholder && static_cast<const Placeholder&>(node).isState();
}

std::string_view colour(const Node& node) {
  switch (node.def().kind) {
    case OpKind::Storage:
      if (node.op() == Op::Save) return "#ffd0c0";
      return node.op() == Op::Constant ? "#e8e8e8" : isState(node) ? "#f6c98f" : "#ffe9b8";
    case OpKind::Elementwise:
      return "#cfe8cf";
    case OpKind::Core:
    case OpKind::Target:
      return "#c6dcf4";
    case OpKind::View:
      return "#f4f4f4";
    case OpKind::Composite:
    case OpKind::Derivative:
      break;
  }
  return "#e2cff0";
}

class Drawing {
public:
  std::string run(const std::vector<const Function*>& functions, const std::vector<const Node*>& storage) {
    for (const Node* node : storage) box(*node, "  ");
    for (const Function* function : functions) {
      out_ += fmt::format("  subgraph cluster{} {{\n    label=\"{}\"\n", clusters_++, escapeDot(function->name()));
      for (const auto& node : function->nodes()) box(*node, "    ");
      out_ += "  }\n";
    }
    for (const Function* function : functions)
      for (const auto& node : function->nodes()) edges(*node);
    return "digraph aglow {\n  rankdir=TB\n  node [fontname=\"Helvetica\", style=filled]\n"
           "  edge [fontname=\"Helvetica\", fontsize=9]\n" +
           out_ + "}\n";
  }

private:
  void box(const Node& node, std::string_view indent) {
    ids_.emplace(&node, ids_.size());
    std::string label = escapeDot(node.name()) + "\\n" + (isState(node) ? "State" : escapeDot(node.def().name));
    if (const std::string attrs = printAttrs(node.attrs()); !attrs.empty()) label += "\\n" + escapeDot(attrs);
    if (node.isStorage()) label += "\\n" + escapeDot(node.type().text());
    out_ += fmt::format("{}n{} [shape={}, fillcolor=\"{}\", label=\"{}\"]\n", indent, ids_.at(&node),
                        node.isStorage() ? "box" : "ellipse", colour(node), label);
  }

  // A Save points at what it writes.
  void edges(const Node& node) {
    for (int i = 0; i < node.inputCount(); ++i) {
      const Value value = node.input(i);
      if (!value) continue;
      if (node.op() == Op::Save && i == 1)
        edge(node, *value.node, value.type(), "");
      else
        edge(*value.node, node, value.type(), "");
    }
    if (const Value p = node.predicate()) edge(*p.node, node, p.type(), ", style=dashed");
  }

  void edge(const Node& from, const Node& to, const Type& type, std::string_view style) {
    out_ += fmt::format("  n{} -> n{} [label=\"{}\"{}]\n", ids_.at(&from), ids_.at(&to), escapeDot(type.text()), style);
  }

  std::string out_;
  std::unordered_map<const Node*, size_t> ids_;
  int clusters_ = 0;
};

}  // namespace

std::string drawDot(const Module& module) {
  std::vector<const Node*> storage;
  for (const auto& node : module.storage()) storage.push_back(node.get());
  std::vector<const Function*> functions;
  for (const auto& function : module.functions()) functions.push_back(function.get());
  return Drawing().run(functions, storage);
}

std::string drawDot(const Function& function) {
  std::vector<const Node*> storage;
  for (const auto& node : function.module().storage())
    for (const Use& use : node->uses())
      if (use.user->function() == &function) {
        storage.push_back(node.get());
        break;
      }
  return Drawing().run({&function}, storage);
}

}  // namespace aglow
