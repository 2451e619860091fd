// What kernels of all operators are written with.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/clike/launch.h"
#include "codegen/clike/nest_printer.h"
#include "inst/fused.h"
#include "support/check.h"

namespace aglow::codegen {

// A text with $words in it, each replaced by what stands for it.
struct Word {
  std::string_view name;
  std::string text;
  Word(std::string_view n, std::string t) : name(n), text(std::move(t)) {}
  Word(std::string_view n, int64_t number) : name(n), text(std::to_string(number)) {}
};
std::string fill(std::string_view text, const std::vector<Word>& words);

// A vector of elements in memory or registers; of integers those without a sign. One is just the element.
std::string vectorName(ElemKind kind, int64_t lanes);

// The unsigned integer that has the bytes of an element.
ElemKind rawKind(ElemKind kind);

// One kernel of an instruction. Its anchor is what computes, and what is fused with that is the epilogue.
class KernelWriter {
public:
  KernelWriter(const Program& program, const Instr& instr, const DeviceShape& shape);

  const Instr& anchor() const { return anchor_; }
  const Attrs& attrs() const { return anchor_.attrs; }
  const DeviceShape& shape() const { return shape_; }
  const Type& in(size_t i) const { return typeOf(anchor_.inputs()[i].region); }
  const Type& out(size_t i = 0) const { return typeOf(anchor_.results()[i].region); }
  bool has(size_t i) const { return i < anchor_.inputs().size() && anchor_.inputs()[i].region != kNoRegion; }
  ElemKind kindOf(size_t input) const { return storageKind(in(input).kind()); }
  ElemKind resultKind() const { return storageKind(out().kind()); }

  // Integers that number the elements of all operands.
  const std::string& indexType() const { return indexType_; }

  // Pointers to operands of the anchor, by the name they get; elements as they are stored, or as another kind.
  void input(size_t i, const std::string& name);
  void input(size_t i, const std::string& name, ElemKind as);
  void result(size_t i, const std::string& name);
  void result(size_t i, const std::string& name, ElemKind as);
  // Working memory, from an element of that kind on.
  void scratch(const std::string& name, ElemKind as, int64_t begin = 0);
  // How many neighbours in lines of an input are a whole vector from each multiple of that number on: 1, 2, 4 or 8.
  int64_t together(size_t i, int64_t line) const;
  // To report an index (a statement), unless the instruction's predicate is false everywhere.
  std::string reportIndex(const std::string& index);

  // Statements that define i0, i1, ... of a shape from the number of an element, or from i<first> on.
  std::string indices(const std::vector<int64_t>& dims, const std::string& number, size_t first = 0) const;
  // The same for the epilogue's axes, and the statements that compute on from the variable `given` and store. It has
  // the kind that the result is computed in, or another one.
  std::string resultIndices(const std::string& number) const;
  std::string epilogue(std::optional<ElemKind> given = {});
  // The same for four neighbours, found[0] to found[3], whose first has the number `point` and the column
  // `firstColumn`, both multiples of four: what lies side by side is read and written at once. `indices` and then
  // `finish` are statements on each of them, `given`, with its `point` and `column`.
  std::string epilogueOfFour(const std::string& indices, const std::string& finish);

  // Pointers and tables of a nest.
  void declare(const nest::Nest& nest, const NestPrinter& printer);
  // Blocks on four points: `indices` are those of the first, where they are needed, and of each, `before` more
  // statements on each, `after` what follows its values.
  void inFours(const nest::Nest& nest, std::span<const nest::Block* const> blocks, NestPrinter& printer,
               TextBlock& text, const std::string& indices, const std::string& before,
               const std::string& after = {}) const;

  // The kernel: items of these statements, a group of `group` each; `number` of them (a first statement keeps others
  // out).
  Launch finish(std::string_view statements, std::array<int64_t, 2> items, std::array<int64_t, 2> group);
  // Groups in two directions, which `groupAcross` and `groupDown` number, neighbours first across. They are all in the
  // first dimension of the launch, because GPUs have few groups in the others.
  Launch inGroups(std::string_view statements, int64_t across, int64_t down, std::array<int64_t, 2> group);
  // One item for each of `points`, which is numbered by `point`.
  Launch perPoint(int64_t points, std::string_view statements);

private:
  friend std::vector<Launch> nestLaunches(const Program&, const Instr&, std::span<const nest::Nest>, const DeviceShape&,
                                          std::span<const std::vector<Launch::Argument>>);

  const Type& typeOf(RegionId id) const { return program_[id].type; }
  // Whether the region begins at a multiple of so many bytes, wherever memory is placed.
  bool startsAt(RegionId region, int64_t multiple, int64_t offset = 0) const;
  // The number of the kernel's parameter for an operand of the instruction, so many bytes on.
  size_t parameter(const Launch::Argument& argument);
  int operandOf(RegionId region) const;
  void pointer(const Launch::Argument& argument, const std::string& name, ElemKind kind, bool writes);
  // What an operand of a nest is: that of the instruction with the same number, unless there are `views_`.
  Launch::Argument argumentOf(size_t operand) const {
    return views_.empty() ? Launch::Argument{static_cast<int>(operand)} : views_[operand];
  }

  const Program& program_;
  const Instr& instr_;
  const Instr& anchor_;
  const DeviceShape& shape_;
  std::string indexType_;
  std::vector<Launch::Argument> arguments_, views_;
  std::string tables_, declarations_;
};

// The kernels of nests, one after the other. For each there may be what its operands are, if they are not simply those
// of the instruction: kernels that differ in nothing else are equal.
std::vector<Launch> nestLaunches(const Program& program, const Instr& instr, std::span<const nest::Nest> nests,
                                 const DeviceShape& shape, std::span<const std::vector<Launch::Argument>> views = {});

// As many items as share a row of so many elements well, with `each` of them or more.
int64_t rowGroup(int64_t length, int64_t each, const DeviceShape& shape);
// The kernel of a nest with rows: a group for each, or an item where items do not share local memory.
Launch rowLaunch(KernelWriter& writer, const nest::Nest& nest);
// Those of a nest that does nothing with its rows but reduce them, if they are cut into parts, or into lanes of an
// item; and the working memory that those need. None: rowLaunch has it.
std::vector<Launch> partLaunches(const KernelWriter& writer, const nest::Nest& nest);
int64_t nestScratch(const Program& program, const Instr& instr, const DeviceShape& shape);

// By operator.
using MakeLaunches = std::vector<Launch>(const Program& program, const Instr& instr, const DeviceShape& shape);
MakeLaunches matMulLaunches, convLaunches, poolLaunches, reduceLaunches, argReduceLaunches, scanLaunches, topKLaunches,
    gatherLaunches, scatterLaunches, observeLaunches, moveLaunches, copyLaunches, attentionLaunches, winogradLaunches,
    channelsLastLaunches, recurrentLaunches;
// Whether a kernel fits the use of an operator; if not, why.
using TakesUse = Decision(const Attrs& attrs, const OperandTypes& types, const DeviceShape& shape);
TakesUse takesAttention, takesWinograd, takesChannelsLast, takesRecurrent;
// Bytes of working memory.
using ScratchBytes = int64_t(const Program& program, const Instr& anchor, const DeviceShape& shape);
ScratchBytes reduceScratch, argReduceScratch, observeScratch, matMulScratch, convScratch, winogradScratch,
    channelsLastScratch, recurrentScratch, topKScratch, scatterScratch, attentionScratch;

}  // namespace aglow::codegen
