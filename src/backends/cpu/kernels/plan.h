// How an instruction is done by kernels of the CPU library: rows of a table, each with a condition and a plan. The
// first row that applies wins, so faster and narrower ones stand before general ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "ops/attrs.h"
#include "ops/op.h"
#include "support/decision.h"
#include "tensor/type.h"

namespace aglow::cpu {

// What kernels need to know of the machine they will run on.
struct Machine {
  int lanes = 4;       // f32 elements in a vector register
  int registers = 16;  // vector registers
  bool fma = false;
  bool halves = false;                                  // multiplies pairs of bf16
  bool fastHalves = false;                              // faster than f32
  bool bytes = false;                                   // multiplies groups of four bytes, unsigned by signed ones
  bool byteBlocks = false;                              // multiplies two rows of bytes by two columns, eight deep
  bool halfBlocks = false;                              // multiplies two rows of bf16 by two columns, four deep
  bool matrix = false;                                  // has registers of matrices, for bf16 and for bytes
  int64_t l1 = 32 << 10, l2 = 512 << 10, l3 = 8 << 20;  // bytes of data cache for one core
};

// A function that generated code hands to a kernel, after its four parameters.
struct FunctionParam {
  enum class Kind : uint8_t { Epilogue, Dot, PairDot, BlockDot, PairBlockDot, Load, Store };
  enum class Domain : uint8_t { F32, F64, I64 };
  Kind kind = Kind::Epilogue;
  Domain domain = Domain::F32;  // Load, Store
  int operand = 0;              // Load: number of the input; Store: number of the result
};

// An address of the instruction, in the order of abi.h, and how many bytes after it a kernel begins.
struct KernelAddress {
  int operand = 0;
  int64_t offset = 0;
};

// One kernel over all its units. Steps of a plan run one after the other, and so do the rounds of a step: the kernel
// does units from 0 to rounds * units, and those of different rounds are never done at the same time.
struct KernelStep {
  std::string kernel;  // without the prefix aglow_
  std::vector<std::byte> descriptor;
  int64_t units = 1;
  int64_t rounds = 1;
  std::vector<FunctionParam> functions = {};
  // What the kernel gets; none: all addresses, as they are. Where a step works on parts of operands, offsets here
  // instead of in the descriptor let steps share their code.
  std::vector<KernelAddress> addresses = {};
  bool general = false;  // gains little from a descriptor that is known when code is generated
};

// What a caller wants of a plan: that each image's units, in their order, fall into as many even parts, of which each
// writes its own stretch along an axis of the epilogue's extents. Images are the first axis.
struct CutWish {
  int64_t axis = 0;  // 0: nothing
  int64_t parts = 1;
};

// How a plan with such parts reads the operands: as Cut::outer, by input.
struct KernelCut {
  std::vector<int64_t> inputs;
};

struct KernelPlan {
  std::vector<KernelStep> steps;
  int64_t scratchBytes = 0;
  // With an Epilogue in a step: the first result seen as four axes, whose product is its number of elements.
  int64_t epilogueDims[4] = {0, 0, 0, 0};
  double flops = 0;                   // for reports; 0: not counted
  std::optional<KernelCut> cut = {};  // where that was wished for and can be
};

// What an instruction is: its operator and the types of its operands, null where one is absent.
struct Problem {
  const Attrs& attrs;
  std::span<const Type* const> in;
  std::span<const Type* const> out;
  CutWish wish = {};

  const Type& inType(int i) const { return *in[static_cast<size_t>(i)]; }
  const Type& outType(int i = 0) const { return *out[static_cast<size_t>(i)]; }
  bool has(int i) const { return i < static_cast<int>(in.size()) && in[static_cast<size_t>(i)] != nullptr; }
};

struct KernelRow {
  Op op;
  std::string_view name;
  Decision (*applies)(const Problem& problem, const Machine& machine);
  KernelPlan (*plan)(const Problem& problem, const Machine& machine);
};

// No steps where there are no results; the plan otherwise.
template <KernelPlan (*plan)(const Problem&, const Machine&)>
KernelPlan unlessEmpty(const Problem& problem, const Machine& machine) {
  return problem.outType().elements() == 0 ? KernelPlan{} : plan(problem, machine);
}

// The rows of each family, in <family>/cpu_rows.cpp.
std::span<const KernelRow> gemmRows();
std::span<const KernelRow> convRows();
std::span<const KernelRow> poolRows();
std::span<const KernelRow> attentionRows();
std::span<const KernelRow> recurrentRows();
std::span<const KernelRow> indexRows();
std::span<const KernelRow> genericRows();

template <class Desc>
std::vector<std::byte> descriptorBytes(const Desc& desc) {
  static_assert(std::is_trivially_copyable_v<Desc> && std::has_unique_object_representations_v<Desc>,
                "padding would make equal descriptors differ");
  std::vector<std::byte> bytes(sizeof(Desc));
  std::memcpy(bytes.data(), &desc, sizeof(Desc));
  return bytes;
}

}  // namespace aglow::cpu
