// What moves elements: transposed, cut out, put together, padded.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "codegen/clike/kernel_writer.h"
#include "ops/all_ops.h"
#include "ops/axes.h"
#include "support/sizes.h"

namespace aglow::codegen {

namespace {

// The axes of a copy, with a step along each in what is read and what is written.
struct Walk {
  std::vector<int64_t> extents, from, to;
};

// Neighbouring axes that both walk as one become one.
Walk merged(const std::vector<int64_t>& dims, const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  Walk walk;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 1) continue;
    if (!walk.extents.empty() && walk.from.back() == from[axis] * dims[axis] &&
        walk.to.back() == to[axis] * dims[axis]) {
      walk.extents.back() *= dims[axis];
      walk.from.back() = from[axis];
      walk.to.back() = to[axis];
      continue;
    }
    walk.extents.push_back(dims[axis]);
    walk.from.push_back(from[axis]);
    walk.to.push_back(to[axis]);
  }
  if (walk.extents.empty()) walk = {.extents = {1}, .from = {0}, .to = {0}};
  return walk;
}

// Copies from operands to the first: nests whose operands are the place that is written, and the one that is read.
struct Moves {
  std::vector<nest::Nest> nests;
  std::vector<std::vector<Launch::Argument>> views;

  // One side of a copy: from the element `first` of an operand on, by so many for a step along each axis.
  struct Side {
    int operand = 0;
    std::vector<int64_t> strides;
    int64_t first = 0;
  };
  void add(const Program& program, const Instr& instr, const std::vector<int64_t>& dims, const Side& from,
           const Side& to);
};

// Where a side begins is an argument of the kernel, so that the parts of a whole have one.
void Moves::add(const Program& program, const Instr& instr, const std::vector<int64_t>& dims, const Side& from,
                const Side& to) {
  nest::Nest nest;
  std::vector<Launch::Argument>& view = views.emplace_back();
  for (const Side* side : {&to, &from}) {
    const Operand& operand = instr.operands[static_cast<size_t>(side->operand)];
    const Type& type = program[operand.region].type;
    const ElemKind raw = rawKind(type.kind());
    nest.operands.push_back({.kind = raw, .access = operand.access, .elements = type.elements()});
    view.push_back({.operand = side->operand, .offset = side->first * elemBytes(raw)});
  }
  const ElemKind kind = nest.operands[0].kind;
  const Walk walk = merged(dims, from.strides, to.strides);
  for (const int64_t extent : walk.extents) nest.axes.push_back({.extent = extent});
  nest.accesses.push_back({.operand = 1, .kind = kind, .strides = walk.from});
  nest.accesses.push_back({.operand = 0, .kind = kind, .strides = walk.to});
  nest.values.push_back({.op = nest::Expr::Op::Load, .kind = kind, .a = 0});
  nest::Stage stage;
  stage.each = {.begin = 0, .end = 1, .stores = {{.value = 0, .access = 1}}};
  nest.stages.push_back(std::move(stage));
  nests.push_back(std::move(nest));
}

int64_t dot(const std::vector<int64_t>& index, const std::vector<int64_t>& strides) {
  int64_t sum = 0;
  for (size_t i = 0; i < index.size(); ++i) sum += index[i] * strides[i];
  return sum;
}

// Neighbours are read along one axis and written along another: squares of both go through local memory, whose lines
// are one element longer, so that a column lies in as many banks as a line.
constexpr std::string_view kSquares = R"(LOCAL_ARRAY $T square[32 * 33];
const $I group = ($I)GROUP(0);
const int32_t across = (int32_t)LOCAL_ITEM(0), down = (int32_t)LOCAL_ITEM(1);
const $I column = group % $columnTiles * 32, row = group / $columnTiles % $rowTiles * 32;
const $I others = group / ($columnTiles * $rowTiles);
$indices
const $I from = $from, to = $to;
for (int32_t i = down; i < 32; i += $items)
  if (row + across < $rows && column + i < $columns)
    square[i * 33 + across] = x[from + (column + i) * $step + row + across];
BARRIER();
for (int32_t i = down; i < 32; i += $items)
  if (row + i < $rows && column + across < $columns)
    y[to + (row + i) * $line + column + across] = square[across * 33 + i];
)";

// None where neighbours stay neighbours, or are so few that what is read lies in lines of the cache anyway.
std::optional<Launch> squares(KernelWriter& writer, const Walk& walk) {
  constexpr int64_t kSide = 32, kLeast = 8;
  const size_t columns = walk.extents.size() - 1;
  const size_t rows = static_cast<size_t>(std::find(walk.from.begin(), walk.from.end(), 1) - walk.from.begin());
  if (!writer.shape().sharesLocal || rows >= columns || walk.to.back() != 1) return std::nullopt;
  if (std::min(walk.extents[rows], walk.extents[columns]) < kLeast) return std::nullopt;
  const ElemKind raw = rawKind(writer.out().kind());
  const int64_t items = std::min<int64_t>(writer.shape().groupItems / kSide, 8);
  if (items < 1 || kSide * (kSide + 1) * elemBytes(raw) > writer.shape().localBytes) return std::nullopt;
  std::vector<int64_t> others;
  std::string from = "0", to = "0";
  for (size_t axis = 0; axis < columns; ++axis) {
    if (axis == rows) continue;
    from += fmt::format(" + i{} * {}", others.size(), walk.from[axis]);
    to += fmt::format(" + i{} * {}", others.size(), walk.to[axis]);
    others.push_back(walk.extents[axis]);
  }
  int64_t groups = ceilDiv(walk.extents[rows], kSide) * ceilDiv(walk.extents[columns], kSide);
  for (const int64_t extent : others) groups *= extent;
  writer.input(0, "x", raw);
  writer.result(0, "y", raw);
  return writer.finish(fill(kSquares, {{"I", writer.indexType()},
                                       {"T", typeName(raw)},
                                       {"columns", walk.extents[columns]},
                                       {"rows", walk.extents[rows]},
                                       {"columnTiles", ceilDiv(walk.extents[columns], kSide)},
                                       {"rowTiles", ceilDiv(walk.extents[rows], kSide)},
                                       {"indices", writer.indices(others, "others")},
                                       {"from", from},
                                       {"to", to},
                                       {"step", walk.from[columns]},
                                       {"line", walk.to[rows]},
                                       {"items", items}}),
                       {groups * kSide, items}, {kSide, items});
}

}  // namespace

std::vector<Launch> copyLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  const int64_t elements = program[instr.operands[0].region].type.elements();
  Moves moves;
  moves.add(program, instr, {elements}, {.operand = 1, .strides = {1}}, {.strides = {1}});
  return nestLaunches(program, instr, moves.nests, shape, moves.views);
}

// Transpose, Slice, Concat, Pad: copies with strides, one after the other.
std::vector<Launch> moveLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  const Attrs& attrs = instr.attrs;
  const auto typeOf = [&](size_t operand) -> const Type& { return program[instr.operands[operand].region].type; };
  const Shape &y = typeOf(0).shape(), &x = typeOf(1).shape();
  const std::vector<int64_t> to = y.strides();
  std::vector<int64_t> from = x.strides();
  Moves moves;
  switch (opOf(attrs.op())) {
    case Op::Transpose: {
      std::vector<int64_t> permuted;
      for (const int64_t axis : attrs.ints("perm")) permuted.push_back(from[static_cast<size_t>(axis)]);
      KernelWriter writer(program, instr, shape);
      if (std::optional<Launch> launch = squares(writer, merged(y.dims(), permuted, to))) return {*std::move(launch)};
      moves.add(program, instr, y.dims(), {.operand = 1, .strides = permuted}, {.strides = to});
      break;
    }
    case Op::Slice: {
      const int64_t start = dot(attrs.ints("starts"), from);
      const std::vector<int64_t> steps = filled(attrs.ints("steps"), y.rank(), 1);
      for (size_t axis = 0; axis < from.size(); ++axis) from[axis] *= y[static_cast<int>(axis)] > 1 ? steps[axis] : 0;
      moves.add(program, instr, y.dims(), {.operand = 1, .strides = from, .first = start}, {.strides = to});
      break;
    }
    case Op::Concat: {
      const auto axis = static_cast<int>(attrs.integer("axis"));
      int64_t position = 0;
      for (size_t part = 1; part < instr.operands.size(); ++part) {
        const Shape& one = typeOf(part).shape();
        moves.add(program, instr, one.dims(), {.operand = static_cast<int>(part), .strides = one.strides()},
                  {.strides = to, .first = position * to[static_cast<size_t>(axis)]});
        position += one[axis];
      }
      break;
    }
    default:
      moves.add(program, instr, y.dims(), {.operand = 2, .strides = std::vector<int64_t>(to.size(), 0)},
                {.strides = to});
      moves.add(program, instr, x.dims(), {.operand = 1, .strides = from},
                {.strides = to, .first = dot(attrs.ints("before"), to)});
  }
  return nestLaunches(program, instr, moves.nests, shape, moves.views);
}

}  // namespace aglow::codegen
