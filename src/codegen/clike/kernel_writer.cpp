#include "codegen/clike/kernel_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "codegen/nest/build.h"
#include "codegen/nest/kinds.h"

namespace aglow::codegen {

namespace {

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
    before += fmt::format("TABLE_ARRAY const {} {}_t{}[] = {};\n", type, Launch::kName, i, printer.tableText(i));
    inside += fmt::format("TABLE const {}* t{} = {}_t{};\n", type, i, Launch::kName, i);
  }
  return inside;
}

}  // namespace

std::string fill(std::string_view text, const std::vector<Word>& words) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      out += text[at++];
      continue;
    }
    size_t end = at + 1;
    while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end])) != 0) ++end;
    const std::string_view name = text.substr(at + 1, end - at - 1);
    const auto word = std::find_if(words.begin(), words.end(), [&](const Word& w) { return w.name == name; });
    AGLOW_CHECK(word != words.end(), fmt::format("a kernel's text has the word {}", name));
    out += word->text;
    at = end;
  }
  return out;
}

std::string vectorName(ElemKind kind, int64_t lanes) {
  static constexpr std::pair<int, const char*> kNames[] = {{1, "uchar"}, {2, "ushort"}, {4, "uint"}, {8, "ulong"}};
  std::string name = kind == ElemKind::Float32 ? "float" : kind == ElemKind::Float64 ? "double" : "";
  for (const auto& [bytes, unsignedName] : kNames)
    if (name.empty() && elemBytes(kind) == bytes) name = unsignedName;
  return lanes == 1 ? name : fmt::format("{}{}", name, lanes);
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

size_t KernelWriter::parameter(const Launch::Argument& argument) {
  const auto it = std::find(arguments_.begin(), arguments_.end(), argument);
  if (it != arguments_.end()) return static_cast<size_t>(it - arguments_.begin());
  arguments_.push_back(argument);
  return arguments_.size() - 1;
}

int KernelWriter::operandOf(RegionId region) const {
  const auto it = std::find_if(instr_.operands.begin(), instr_.operands.end(),
                               [&](const Operand& operand) { return operand.region == region; });
  AGLOW_CHECK(it != instr_.operands.end(), "an operand of the anchor is none of the instruction");
  return static_cast<int>(it - instr_.operands.begin());
}

void KernelWriter::pointer(const Launch::Argument& argument, const std::string& name, ElemKind kind, bool writes) {
  const std::string type = fmt::format("{}{}", writes ? "" : "const ", storedName(kind));
  declarations_ += fmt::format("GLOBAL {}* {} = AT({}, {});\n", type, name, parameter(argument), type);
}

void KernelWriter::input(size_t i, const std::string& name) { input(i, name, kindOf(i)); }
void KernelWriter::input(size_t i, const std::string& name, ElemKind as) {
  pointer({operandOf(anchor_.inputs()[i].region)}, name, as, false);
}
void KernelWriter::result(size_t i, const std::string& name) { result(i, name, storageKind(out(i).kind())); }
void KernelWriter::result(size_t i, const std::string& name, ElemKind as) {
  pointer({operandOf(anchor_.results()[i].region)}, name, as, true);
}
void KernelWriter::scratch(const std::string& name, ElemKind as, int64_t begin) {
  AGLOW_CHECK(instr_.operands.back().access == Access::Scratch, "the instruction has no working memory");
  pointer({static_cast<int>(instr_.operands.size()) - 1, begin * elemBytes(as)}, name, as, true);
}

bool KernelWriter::startsAt(RegionId region, int64_t multiple, int64_t offset) const {
  return (program_.extent(region).begin + offset) % multiple == 0;
}

int64_t KernelWriter::together(size_t i, int64_t line) const {
  int64_t lanes = 8;
  while (lanes > 1 && (line % lanes != 0 || !startsAt(anchor_.inputs()[i].region, lanes * elemBytes(kindOf(i)))))
    lanes /= 2;
  return lanes;
}

std::string KernelWriter::reportIndex(const std::string& index) {
  if (std::find(arguments_.begin(), arguments_.end(), Launch::Argument{Launch::kFault}) == arguments_.end()) {
    pointer({Launch::kFault}, "fault", ElemKind::Int32, true);
    if (instr_.predicate != kNoRegion) pointer({Launch::kPredicate}, "predicate", ElemKind::UInt8, false);
  }
  std::string wanted;
  if (instr_.predicate != kNoRegion)
    wanted = fmt::format(
        "bool wanted = false;\nfor (int64_t at = 0; at < {}; ++at) wanted = wanted || predicate[at] != 0;\nif "
        "(wanted) ",
        typeOf(instr_.predicate).elements());
  return fmt::format("{{ {}if (ATOMIC_SET_ONCE(fault)) *(GLOBAL int64_t*)(fault + 2) = {}; }}", wanted, index);
}

std::string KernelWriter::indices(const std::vector<int64_t>& dims, const std::string& number, size_t first) const {
  std::string text;
  int64_t below = 1;
  for (size_t axis = dims.size(); axis-- > 0; below *= std::max<int64_t>(dims[axis], 1)) {
    std::string index = below == 1 ? number : fmt::format("{} / {}", number, below);
    if (axis > 0) index += fmt::format(" % {}", std::max<int64_t>(dims[axis], 1));
    text += fmt::format("const {} i{} = {};\n", indexType_, first + axis, index);
  }
  return text;
}

std::string KernelWriter::resultIndices(const std::string& number) const {
  return indices(viewOf(out().shape()), number);
}

std::string KernelWriter::epilogue(std::optional<ElemKind> given) {
  const nest::Nest nest = nest::epilogueOf(program_, instr_, viewOf(out().shape()), given);
  TextBlock text;
  NestPrinter printer(nest, text, "given", "point");
  declare(nest, printer);
  for (const nest::Stage& stage : nest.stages) {
    printer.values(stage.each);
    printer.stores(stage.each);
  }
  return text.take();
}

std::string KernelWriter::epilogueOfFour(const std::string& indices, const std::string& finish) {
  const nest::Nest nest = nest::epilogueOf(program_, instr_, viewOf(out().shape()));
  TextBlock text;
  NestPrinter printer(nest, text, "given", "point");
  declare(nest, printer);
  const std::string each =
      fmt::format("{} given = found[lane];\n{}", typeName(nest::computedKind(resultKind())), finish);
  std::vector<const nest::Block*> blocks;
  for (const nest::Stage& stage : nest.stages) blocks.push_back(&stage.each);
  inFours(nest, blocks, printer, text,
          fmt::format("const {} column = firstColumn + lane;\nconst int64_t point = firstPoint + lane;\n{}", indexType_,
                      indices),
          each);
  return text.take();
}

void KernelWriter::declare(const nest::Nest& nest, const NestPrinter& printer) {
  for (size_t i = 0; i < nest.operands.size(); ++i)
    if (printer.uses(i))
      pointer(argumentOf(i), fmt::format("p{}", i), nest.operands[i].kind, writes(nest.operands[i].access));
  declarations_ += tableLines(nest, printer, tables_);
}

void KernelWriter::inFours(const nest::Nest& nest, std::span<const nest::Block* const> blocks, NestPrinter& printer,
                           TextBlock& text, const std::string& indices, const std::string& before,
                           const std::string& after) const {
  std::vector<bool> together(nest.accesses.size());
  const auto joins = [&](int access) {
    const nest::Access& a = nest.accesses[static_cast<size_t>(access)];
    if (!printer.inFours(access)) return false;
    const Launch::Argument view = argumentOf(static_cast<size_t>(a.operand));
    return startsAt(instr_.operands[static_cast<size_t>(view.operand)].region, 4 * elemBytes(a.kind), view.offset);
  };
  std::string loads, stores;
  // Of what lies in memory.
  const auto fourOf = [](ElemKind kind) {
    return kind == ElemKind::Float64 ? std::string("STORED_F64_4") : vectorName(kind, 4);
  };
  const auto declare = [&](int access) {
    if (together[static_cast<size_t>(access)]) return;
    together[static_cast<size_t>(access)] = true;
    loads += fmt::format("{} w{}[4];\n", storedName(nest.accesses[static_cast<size_t>(access)].kind), access);
  };
  for (const nest::Block* block : blocks) {
    for (int id = block->begin; id < block->end; ++id) {
      const nest::Expr& e = nest.value(id);
      if (e.op != nest::Expr::Op::Load || !joins(e.a) || together[static_cast<size_t>(e.a)]) continue;
      const nest::Access& a = nest.accesses[static_cast<size_t>(e.a)];
      declare(e.a);
      const std::string type = storedName(a.kind);
      loads += fmt::format(
          "{{ const {0} all = *(GLOBAL const {0}*)(p{1} + {2}); w{3}[0] = ({4})all.s0, w{3}[1] = "
          "({4})all.s1, w{3}[2] = ({4})all.s2, w{3}[3] = ({4})all.s3; }}\n",
          fourOf(a.kind), a.operand, printer.place(e.a), e.a, type);
    }
    for (const nest::Store& store : block->stores) {
      if (store.access < 0 || !joins(store.access)) continue;
      const nest::Access& a = nest.accesses[static_cast<size_t>(store.access)];
      declare(store.access);
      stores += fmt::format("*(GLOBAL {0}*)(p{1} + {2}) = VECTOR4({0}, w{3}[0], w{3}[1], w{3}[2], w{3}[3]);\n",
                            fourOf(a.kind), a.operand, printer.place(store.access), store.access);
    }
  }
  printer.moveTogether(together);
  text.open("");
  text.line("const int32_t lane = 0;\n" + indices + loads);
  text.line("#pragma unroll");
  text.open("for (int32_t lane = 0; lane < 4; ++lane)");
  text.line(indices + before);
  for (const nest::Block* block : blocks) {
    printer.values(*block);
    printer.stores(*block);
  }
  if (!after.empty()) text.line(after);
  text.close();
  text.line(stores);
  text.close();
  printer.moveTogether({});
}

Launch KernelWriter::finish(std::string_view statements, std::array<int64_t, 2> items, std::array<int64_t, 2> group) {
  std::string parameters = "ITEMS";
  for (size_t i = 0; i < arguments_.size(); ++i) parameters += fmt::format("{}OPERAND({})", i == 0 ? " " : ", ", i);
  std::string text = fmt::format("{}KERNEL({}, {}) {}({}) {{\n{}{}}}\n", tables_, group[0], group[1], Launch::kName,
                                 parameters, declarations_, statements);
  return {.text = std::move(text),
          .items = {upTo(items[0], group[0]), upTo(items[1], group[1])},
          .group = group,
          .arguments = arguments_};
}

Launch KernelWriter::inGroups(std::string_view statements, int64_t across, int64_t down, std::array<int64_t, 2> group) {
  const int64_t length = std::max<int64_t>(across, 1);
  return finish(fmt::format("const {0} groupAcross = ({0})(GROUP(0) % {1}), groupDown = ({0})(GROUP(0) / {1});\n{2}",
                            indexType_, length, statements),
                {across * down * group[0], group[1]}, group);
}

Launch KernelWriter::perPoint(int64_t points, std::string_view statements) {
  const int64_t most = std::min<int64_t>(shape_.groupItems, shape_.sharesLocal ? 128 : 64);
  const int64_t group = std::clamp<int64_t>(points, 1, most);
  const std::string text =
      fmt::format("const {} point = ({})ITEM(0);\n{}{}", indexType_, indexType_,
                  points % group == 0 ? "" : fmt::format("if (point >= {}) return;\n", points), statements);
  return finish(text, {points, 1}, {group, 1});
}

// ---------------------------------------------------------------- nests

std::vector<Launch> nestLaunches(const Program& program, const Instr& instr, std::span<const nest::Nest> nests,
                                 const DeviceShape& shape, std::span<const std::vector<Launch::Argument>> views) {
  std::vector<Launch> launches;
  for (size_t number = 0; number < nests.size(); ++number) {
    const nest::Nest& nest = nests[number];
    const int64_t points = nest.rowCount() * nest.rowLength();
    const bool hasRows = nest.axes.back().role == nest::Axis::Role::Row;
    if (points == 0 && !(hasRows && nest.rowCount() > 0)) continue;
    KernelWriter writer(program, instr, shape);
    if (!views.empty()) writer.views_ = views[number];
    if (points >= std::numeric_limits<int32_t>::max() / 2) writer.indexType_ = "int64_t";
    if (hasRows) {
      std::vector<Launch> inParts = partLaunches(writer, nest);
      if (inParts.empty()) inParts.push_back(rowLaunch(writer, nest));
      for (Launch& launch : inParts) launches.push_back(std::move(launch));
      continue;
    }
    TextBlock out;
    NestPrinter printer(nest, out, {}, "point");
    writer.declare(nest, printer);
    std::vector<int64_t> dims;
    for (const nest::Axis& axis : nest.axes) dims.push_back(axis.extent);
    if (shape.sharesLocal && points % 4 == 0) {
      const std::string indices =
          fmt::format("const {0} point = firstPoint + lane;\n{1}", writer.indexType(), writer.indices(dims, "point"));
      out.line(fmt::format("const {} firstPoint = point * 4;", writer.indexType()));
      std::vector<const nest::Block*> blocks;
      for (const nest::Stage& stage : nest.stages)
        for (const nest::Block* block : {&stage.row, &stage.each}) blocks.push_back(block);
      writer.inFours(nest, blocks, printer, out, indices, "");
      launches.push_back(writer.perPoint(points / 4, out.take()));
      continue;
    }
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
