// aglow ops: the operators of the graph, the core instructions under them, and the ONNX operators above them.
#include <fmt/format.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "codegen/nest/scalars.h"
#include "import/onnx/op_import.h"
#include "ops/all_ops.h"

namespace aglow::cli {

namespace {

// The instructions that are not operators of the graph.
constexpr std::string_view kMemoryInstructions[] = {"alloc", "dealloc",    "tensorview",
                                                    "copy",  "copy.start", "copy.wait"};
constexpr std::string_view kElementwise = "elementwise";

std::string_view kindName(OpKind kind) {
  switch (kind) {
    case OpKind::Storage:
      return "storage";
    case OpKind::Elementwise:
      return "elementwise";
    case OpKind::Core:
      return "core";
    case OpKind::View:
      return "view";
    case OpKind::Target:
      return "target";
    case OpKind::Derivative:
      return "derivative";
    case OpKind::Composite:
      break;
  }
  return "composite";
}

std::string operands(const OpDef& op) {
  std::string out;
  for (const OperandDef& in : op.in)
    out += fmt::format("{}{}{}", out.empty() ? "" : ", ", in.name,
                       in.arity == Arity::Optional   ? "?"
                       : in.arity == Arity::Variadic ? "..."
                                                     : "");
  return out;
}

std::vector<std::string> names(OpKind kind) {
  std::vector<std::string> names;
  for (const OpDef* op : allOps())
    if (op->kind == kind) names.emplace_back(op->name);
  return names;
}

// What a backend implements: one loop over formulas, the core operators, and the memory instructions.
std::vector<std::string> coreInstructions() {
  std::vector<std::string> all = names(OpKind::Core);
  all.insert(all.begin(), std::string(kElementwise));
  all.insert(all.end(), std::begin(kMemoryInstructions), std::end(kMemoryInstructions));
  return all;
}

size_t countOf(OpKind kind) {
  size_t count = 0;
  for (const OpDef* op : allOps()) count += op->kind == kind ? 1 : 0;
  return count;
}

// The operators that can be imported: of ONNX, by domain and name, and of Caffe2, by name.
struct Imported {
  std::vector<std::string> onnx, caffe2;

  Imported() {
    constexpr std::string_view kCaffe2 = "caffe2::";
    for (std::string& name : onnx::supportedOperators())
      if (name.starts_with(kCaffe2))
        caffe2.push_back(name.substr(kCaffe2.size()));
      else
        onnx.push_back(std::move(name));
  }
};

std::string coreText() {
  const std::vector<std::string> core = coreInstructions();
  const auto [onnx, caffe2] = Imported();
  std::string out = fmt::format(
      "{} core instructions carry {} ONNX operators and {} of Caffe2.\n\nA backend implements:\n  {} (one loop; {} "
      "operators are formulas over {} scalar primitives)\n",
      core.size(), onnx.size(), caffe2.size(), kElementwise, countOf(OpKind::Elementwise), kScalars - 3);
  const auto list = [&](OpKind kind) {
    for (const OpDef* op : allOps())
      if (op->kind == kind) out += fmt::format("  {}({})\n", op->name, operands(*op));
  };
  list(OpKind::Core);
  out += "and for memory:\n";
  for (const std::string_view name : kMemoryInstructions) out += fmt::format("  {}\n", name);
  out += "\nOnly a backend that asks for blocked channels also gets:\n";
  list(OpKind::Target);
  out +=
      fmt::format("\nONNX operators:\n  {}\n\nCaffe2 operators:\n  {}\n", fmt::join(onnx, " "), fmt::join(caffe2, " "));
  return out;
}

// The first of a set of element kinds.
ElemKind anyOf(KindSet kinds) { return static_cast<ElemKind>(std::countr_zero(kinds)); }

// Whether an elementwise operator gives bools, as its type rule says of scalars of some kind.
bool givesBools(const OpDef& op) {
  std::vector<Type> types;
  for (const OperandDef& in : op.in) types.emplace_back(anyOf(in.kinds), Shape());
  std::vector<const Type*> in;
  for (const Type& type : types) in.push_back(&type);
  const auto results = op.infer({.op = op, .attrs = Attrs(op), .in = in});
  return results.ok() && results->front().kind() == ElemKind::Bool;
}

// An elementwise operator to be computed elsewhere: the terms of its formula, each the name of a primitive and the
// numbers of earlier terms (or the operand, attribute or constant that a leaf stands for); the element kinds that each
// operand takes; and the range in which the formula is defined.
nlohmann::json describeFormula(const OpDef& op) {
  nlohmann::json json = {{"from", op.probe.low}, {"to", op.probe.high}, {"gives_bools", givesBools(op)}};
  for (const OperandDef& in : op.in) {
    nlohmann::json kinds;
    for (int kind = 0; kind < kElemKinds; ++kind)
      if (contains(in.kinds, static_cast<ElemKind>(kind))) kinds.push_back(elemName(static_cast<ElemKind>(kind)));
    json["operand_kinds"].push_back(std::move(kinds));
  }
  for (const Term& term : op.scalar) {
    const nest::ScalarInfo& info = nest::scalarInfo(term.op);
    nlohmann::json row = {info.name};
    if (term.op == Scalar::Arg) row.push_back(term.a);
    if (term.op == Scalar::Attr) row.push_back(term.attr);
    if (term.op == Scalar::Const) row.push_back(fmt::format("{}", term.value));
    const uint8_t of[] = {term.a, term.b, term.c};
    for (int i = 0; i < info.operands; ++i) row.push_back(of[i]);
    json["terms"].push_back(std::move(row));
  }
  return json;
}

nlohmann::json describe(const OpDef& op) {
  nlohmann::json json = {{"name", op.name}, {"kind", kindName(op.kind)}, {"doc", op.doc}};
  for (const OperandDef& in : op.in) json["operands"].push_back(in.name);
  for (const ResultDef& out : op.out) json["results"].push_back(out.name);
  for (const AttrDef& attr : op.attrs) json["attributes"].push_back(attr.name);
  for (const AttrDef& attr : op.attrs)
    if (attr.kind == AttrKind::Float)
      json["defaults"][std::string(attr.name)] = attr.number;
    else if (attr.kind == AttrKind::Int)
      json["defaults"][std::string(attr.name)] = static_cast<int64_t>(attr.number);
    else if (attr.kind == AttrKind::Bool)
      json["defaults"][std::string(attr.name)] = attr.number != 0;
  if (const std::string_view onnx = op.standard.name.empty() ? op.onnx : op.standard.name; !onnx.empty())
    json["onnx"] = onnx;
  if (op.kind == OpKind::Elementwise) json["formula"] = describeFormula(op);
  return json;
}

std::string asJson(bool coreOnly) {
  const std::vector<std::string> core = coreInstructions();
  const auto [onnx, caffe2] = Imported();
  nlohmann::json json = {{"core", core.size()},
                         {"onnx", onnx.size()},
                         {"caffe2", caffe2.size()},
                         {"scalars", kScalars - 3},
                         {"elementwise", countOf(OpKind::Elementwise)},
                         {"composite", countOf(OpKind::Composite)},
                         {"core_instructions", core},
                         {"target_instructions", names(OpKind::Target)},
                         {"onnx_operators", onnx},
                         {"caffe2_operators", caffe2}};
  if (!coreOnly)
    for (const OpDef* op : allOps()) json["operators"].push_back(describe(*op));
  return json.dump(2) + "\n";
}

std::string allText() {
  std::string out = fmt::format("{:<20} {:<12} {:<42} {}\n", "operator", "kind", "operands", "meaning");
  for (const OpDef* op : allOps())
    out += fmt::format("{:<20} {:<12} {:<42} {}\n", op->name, kindName(op->kind), operands(*op), op->doc);
  return out;
}

}  // namespace

Command opsCommand() {
  struct Flags {
    bool core = false, json = false;
  };
  auto flags = std::make_shared<Flags>();
  return {.name = "ops",
          .doc = "List the operators",
          .options = {{"--core", &flags->core, "The core instructions, and the ONNX operators they carry"},
                      {"--json", &flags->json, "For programs"}},
          .action = [flags] {
            return finish(printOut(flags->json ? asJson(flags->core) : flags->core ? coreText() : allText()));
          }};
}

}  // namespace aglow::cli
