#include "codegen/clike/kernel_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "codegen/nest/build.h"
#include "codegen/nest/kinds.h"

namespace aglow::codegen {

namespace {

void replaceAll(std::string& text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

int64_t mostElements(const Program& program, const Instr& instr) {
  int64_t most = 0;
  for (const Instr& step : bodyOf(instr))
    for (const Operand& operand : step.operands)
      if (operand.region != kNoRegion) most = std::max(most, program[operand.region].type.elements());
  return most;
}

std::vector<int64_t> viewOf(const Shape& shape) { return shape.rank() == 0 ? std::vector<int64_t>{1} : shape.dims(); }

int64_t upTo(int64_t number, int64_t unit) { return (number + unit - 1) / unit * unit; }

// Tables stand before the kernel, under names of their own.
std::string tableLines(const nest::Nest& nest, const NestPrinter& printer, std::string& before) {
  std::string inside;
  for (size_t i = 0; i < nest.tables.size(); ++i) {
    const std::string type = typeName(nest.tables[i].kind);
    before += fmt::format("TABLE const {} {}_t{}[] = {};\n", type, Launch::kName, i, printer.tableText(i));
    inside += fmt::format("TABLE const {}* t{} = {}_t{};\n", type, i, Launch::kName, i);
  }
  return inside;
}

}  // namespace

std::string fill(std::string_view text, std::initializer_list<Word> words) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      out += text[at++];
      continue;
    }
    size_t end = at + 1;
    while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end])) != 0) ++end;
    const std::string_view name = text.substr(at + 1, end - at - 1);
    const auto* word = std::find_if(words.begin(), words.end(), [&](const Word& w) { return w.name == name; });
    AGLOW_CHECK(word != words.end(), fmt::format("a kernel's text has the word {}", name));
    out += word->text;
    at = end;
  }
  return out;
}

ElemKind rawKind(ElemKind kind) {
  switch (elemBytes(kind)) {
    case 1:
      return ElemKind::UInt8;
    case 2:
      return ElemKind::UInt16;
    case 4:
      return ElemKind::UInt32;
    default:
      return ElemKind::UInt64;
  }
}

KernelWriter::KernelWriter(const Program& program, const Instr& instr, const DeviceShape& shape)
    : program_(program),
      instr_(instr),
      anchor_(bodyOf(instr).front()),
      shape_(shape),
      indexType_(mostElements(program, instr) < std::numeric_limits<int32_t>::max() / 2 ? "int32_t" : "int64_t") {}

size_t KernelWriter::parameter(int operand) {
  const auto it = std::find(arguments_.begin(), arguments_.end(), operand);
  if (it != arguments_.end()) return static_cast<size_t>(it - arguments_.begin());
  arguments_.push_back(operand);
  return arguments_.size() - 1;
}

int KernelWriter::operandOf(RegionId region) const {
  const auto it = std::find_if(instr_.operands.begin(), instr_.operands.end(),
                               [&](const Operand& operand) { return operand.region == region; });
  AGLOW_CHECK(it != instr_.operands.end(), "an operand of the anchor is none of the instruction");
  return static_cast<int>(it - instr_.operands.begin());
}

void KernelWriter::pointer(int operand, const std::string& name, ElemKind kind, bool writes) {
  const std::string type = fmt::format("{}{}", writes ? "" : "const ", storedName(kind));
  declarations_ += fmt::format("GLOBAL {}* {} = AT({}, {});\n", type, name, parameter(operand), type);
}

void KernelWriter::input(size_t i, const std::string& name) { input(i, name, kindOf(i)); }
void KernelWriter::input(size_t i, const std::string& name, ElemKind as) {
  pointer(operandOf(anchor_.inputs()[i].region), name, as, false);
}
void KernelWriter::result(size_t i, const std::string& name) { result(i, name, storageKind(out(i).kind())); }
void KernelWriter::result(size_t i, const std::string& name, ElemKind as) {
  pointer(operandOf(anchor_.results()[i].region), name, as, true);
}
void KernelWriter::scratch(const std::string& name, ElemKind as) {
  AGLOW_CHECK(instr_.operands.back().access == Access::Scratch, "the instruction has no working memory");
  pointer(static_cast<int>(instr_.operands.size()) - 1, name, as, true);
}

std::string KernelWriter::reportIndex(const std::string& index) {
  if (std::find(arguments_.begin(), arguments_.end(), Launch::kFault) == arguments_.end()) {
    pointer(Launch::kFault, "fault", ElemKind::Int32, true);
    if (instr_.predicate != kNoRegion) pointer(Launch::kPredicate, "predicate", ElemKind::UInt8, false);
  }
  std::string wanted;
  if (instr_.predicate != kNoRegion)
    wanted = fmt::format(
        "bool wanted = false;\nfor (int64_t at = 0; at < {}; ++at) wanted = wanted || predicate[at] != 0;\nif "
        "(wanted) ",
        typeOf(instr_.predicate).elements());
  return fmt::format("{{ {}if (ATOMIC_SET_ONCE(fault)) *(GLOBAL int64_t*)(fault + 2) = {}; }}", wanted, index);
}

std::string KernelWriter::indices(const std::vector<int64_t>& dims, const std::string& number) const {
  std::string text;
  int64_t below = 1;
  for (size_t axis = dims.size(); axis-- > 0; below *= std::max<int64_t>(dims[axis], 1)) {
    std::string index = below == 1 ? number : fmt::format("{} / {}", number, below);
    if (axis > 0) index += fmt::format(" % {}", std::max<int64_t>(dims[axis], 1));
    text += fmt::format("const {} i{} = {};\n", indexType_, axis, index);
  }
  return text;
}

std::string KernelWriter::resultIndices(const std::string& number) const {
  return indices(viewOf(out().shape()), number);
}

std::string KernelWriter::epilogue() {
  const nest::Nest nest = nest::epilogueOf(program_, instr_, viewOf(out().shape()));
  TextBlock text;
  NestPrinter printer(nest, text, "given", "point");
  for (size_t i = 0; i < nest.operands.size(); ++i)
    if (printer.uses(i))
      pointer(static_cast<int>(i), fmt::format("p{}", i), nest.operands[i].kind, writes(nest.operands[i].access));
  declarations_ += tableLines(nest, printer, tables_);
  for (const nest::Stage& stage : nest.stages) {
    printer.values(stage.each);
    printer.stores(stage.each);
  }
  return text.take();
}

Launch KernelWriter::finish(std::string_view statements, std::array<int64_t, 2> items, std::array<int64_t, 2> group) {
  std::string parameters;
  for (size_t i = 0; i < arguments_.size(); ++i) parameters += fmt::format("{}OPERAND({})", i == 0 ? "" : ", ", i);
  std::string text = fmt::format("{}KERNEL({}, {}) {}({}) {{\n{}{}}}\n", tables_, group[0], group[1], Launch::kName,
                                 parameters, declarations_, statements);
  return {.text = std::move(text),
          .items = {upTo(items[0], group[0]), upTo(items[1], group[1])},
          .group = group,
          .arguments = arguments_};
}

Launch KernelWriter::perPoint(int64_t points, std::string_view statements) {
  const int64_t group = std::min<int64_t>(shape_.groupItems, std::min<int64_t>(points, shape_.sharesLocal ? 128 : 64));
  const std::string text =
      fmt::format("const {} point = ({})ITEM(0);\n{}{}", indexType_, indexType_,
                  points % group == 0 ? "" : fmt::format("if (point >= {}) return;\n", points), statements);
  return finish(text, {points, 1}, {group, 1});
}

// ---------------------------------------------------------------- nests

namespace {

// The row of a group, or of one item: its parts between the stages, and reductions as trees in local memory.
std::string rowStatements(const nest::Nest& nest, NestPrinter& printer, TextBlock& out, const KernelWriter& writer,
                          int64_t group) {
  const size_t outer = printer.outerAxes();
  std::vector<int64_t> outerDims, innerDims;
  for (size_t axis = 0; axis < nest.axes.size(); ++axis)
    (axis < outer ? outerDims : innerDims).push_back(nest.axes[axis].extent);
  const int64_t length = nest.rowLength();
  for (size_t i = 0; i < nest.rows.size(); ++i)
    out.line(fmt::format("LOCAL {} k{}[{}];", storedName(nest.rows[i]), i, length));
  if (group > 1)
    for (size_t i = 0; i < nest.reductions.size(); ++i)
      out.line(fmt::format("LOCAL {} s{}[{}];", typeName(nest.reductions[i].kind), i, group));
  const std::string& type = writer.indexType();
  out.line(fmt::format("const {0} row = ({0})GROUP(0);", type));
  if (group > 1) out.line("const int32_t item = (int32_t)LOCAL_ITEM(0);");
  out.line(writer.indices(outerDims, "row"));
  for (const nest::Stage& stage : nest.stages) {
    printer.values(stage.row);
    if (!stage.row.stores.empty()) {
      if (group > 1) out.line("BARRIER();");
      out.open(group > 1 ? "if (item == 0)" : "");
      printer.stores(stage.row);
      out.close();
    }
    if (stage.each.empty()) continue;
    for (const int id : stage.reductions) printer.startReduction(id);
    out.open(fmt::format("for ({0} at = {1}; at < {2}; at += {3})", type, group > 1 ? "item" : "0", length, group));
    std::string inner = writer.indices(innerDims, "at");
    for (size_t axis = innerDims.size(); axis-- > 0;)
      replaceAll(inner, fmt::format(" i{} =", axis), fmt::format(" i{} =", axis + outer));
    out.line(inner);
    printer.values(stage.each);
    printer.stores(stage.each);
    for (const int id : stage.reductions) printer.combine(id);
    out.close();
    if (group == 1 || stage.reductions.empty()) continue;
    for (const int id : stage.reductions) out.line(fmt::format("s{0}[item] = r{0};", id));
    out.line("BARRIER();");
    out.open(fmt::format("for (int32_t step = {}; step > 0; step /= 2)", group / 2));
    out.open("if (item < step)");
    for (const int id : stage.reductions) {
      out.line(fmt::format("r{} = {};", id, printer.combined(id, fmt::format("s{}[item + step]", id))));
      out.line(fmt::format("s{0}[item] = r{0};", id));
    }
    out.close();
    out.line("BARRIER();");
    out.close();
    for (const int id : stage.reductions) out.line(fmt::format("r{0} = s{0}[0];", id));
    out.line("BARRIER();");
  }
  return out.take();
}

// As many items as share a row well.
int64_t rowGroup(const nest::Nest& nest, const DeviceShape& shape) {
  if (!shape.sharesLocal) return 1;
  int64_t group = 32;
  while (2 * group <= std::min<int64_t>(shape.groupItems, 256) && 2 * group <= nest.rowLength()) group *= 2;
  return std::min(group, shape.groupItems);
}

}  // namespace

std::vector<Launch> nestLaunches(const Program& program, const Instr& instr, std::span<const nest::Nest> nests,
                                 const DeviceShape& shape) {
  std::vector<Launch> launches;
  for (const nest::Nest& nest : nests) {
    const int64_t points = nest.rowCount() * nest.rowLength();
    const bool hasRows = nest.axes.back().role == nest::Axis::Role::Row;
    if (points == 0 && !(hasRows && nest.rowCount() > 0)) continue;
    KernelWriter writer(program, instr, shape);
    if (points >= std::numeric_limits<int32_t>::max() / 2) writer.indexType_ = "int64_t";
    TextBlock out;
    NestPrinter printer(nest, out, {}, hasRows ? "" : "point");
    for (size_t i = 0; i < nest.operands.size(); ++i)
      if (printer.uses(i))
        writer.pointer(static_cast<int>(i), fmt::format("p{}", i), nest.operands[i].kind,
                       writes(nest.operands[i].access));
    writer.declarations_ += tableLines(nest, printer, writer.tables_);
    if (hasRows) {
      const int64_t group = rowGroup(nest, shape);
      const std::string text = rowStatements(nest, printer, out, writer, group);
      launches.push_back(writer.finish(text, {nest.rowCount() * group, 1}, {group, 1}));
      continue;
    }
    std::vector<int64_t> dims;
    for (const nest::Axis& axis : nest.axes) dims.push_back(axis.extent);
    out.line(writer.indices(dims, "point"));
    for (const nest::Stage& stage : nest.stages) {
      printer.values(stage.row);
      printer.stores(stage.row);
      printer.values(stage.each);
      printer.stores(stage.each);
    }
    launches.push_back(writer.perPoint(points, out.take()));
  }
  return launches;
}

}  // namespace aglow::codegen
