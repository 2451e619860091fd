// Instructions as kernels for devices with work items: text in the words that a dialect's prelude defines (KERNEL,
// GLOBAL, ITEM, ...), so that OpenCL C and its relatives differ in nothing else. Shapes and strides are numbers in the
// text; where operands lie is not, so that equal instructions have equal kernels.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/clike/ways.h"
#include "inst/operand_types.h"
#include "inst/program.h"
#include "support/decision.h"

namespace aglow::codegen {

// What stands before all kernels of a program in OpenCL C 1.2, with f64.
std::string openClPrelude();
// The same in CUDA C++, for nvcc or NVRTC with -fmad=false: products and sums are contracted where the text says so.
// Without units that multiply halves, and without copies ahead.
std::string cudaPrelude();
// A kernel with what OpenCL C's prelude does by NVIDIA's own instructions where PTX is defined.
std::string ptxTrial();

// What the choice of kernels goes by.
struct DeviceShape {
  bool sharesLocal = false;  // items of a group run side by side, as on a GPU: rows and tiles are shared by a group
  int64_t groupItems = 64;   // of a group, at most
  int64_t localBytes = 16 << 10;
  int64_t argumentBytes = 1024;  // of a kernel
  int64_t computeUnits = 1;
  int64_t stepItems = 32;         // that run in step: of a sub-group
  int64_t vectorFloats = 16;      // of the vectors that one item computes with
  bool vectors = true;            // the language has them, as OpenCL C does; else lanes are loops
  bool pairs = false;             // it has no f64: two f32 stand for one
  bool multipliesHalves = false;  // 32 items of a group that run in step multiply small matrices of f16 at once
  bool copiesAhead = false;       // bytes go to local memory by themselves, while items compute
  const Ways* ways = nullptr;     // none: the first, always
};

// One kernel, and how often it runs.
struct Launch {
  static constexpr const char* kName = "KERNEL_NAME";  // stands for its name in the text
  // Arguments besides operands: the fault of the instruction, an i32 that is not 0 once an index lies outside of its
  // axis, and at 8 the i64 index; and its predicate.
  static constexpr int kFault = -1, kPredicate = -2;

  std::string text;
  std::array<int64_t, 2> items = {1, 1}, group = {1, 1};  // whole groups of items
  // The number of one of the instruction's operands, or one of the above, and how many bytes of it come before.
  struct Argument {
    int operand = 0;
    int64_t offset = 0;
    bool operator==(const Argument&) const = default;
  };
  std::vector<Argument> arguments;
};

// Operands that kernels can have besides working memory, fault and predicate: each is a pointer and an offset.
constexpr int64_t mostOperands(const DeviceShape& shape) { return std::max<int64_t>(shape.argumentBytes / 16 - 3, 1); }

// Whether there is a kernel for a use of an operator that is not data-parallel; if not, why.
Decision hasKernel(const Attrs& attrs, const OperandTypes& types, const DeviceShape& shape);
// Whether data-parallel instructions can be computed with its result at once.
bool takesEpilogue(const OpDef& op);
// Whether its kernel can be written in several ways, among which DeviceShape::ways chooses.
bool hasWays(const OpDef& op);
// Whether it is a part of another one, as which its kernel is written.
bool isPart(const Attrs& attrs);
// What runs the instruction, in a word: Plan::kernel.
std::string kernelName(const Program& program, const Instr& instr);
// Bytes of working memory that its kernels need.
int64_t scratchBytes(const Program& program, const Instr& instr, const DeviceShape& shape);
// What runs an instruction that computes or copies, in order; none where it has nothing to do.
std::vector<Launch> launchesOf(const Program& program, const Instr& instr, const DeviceShape& shape);

}  // namespace aglow::codegen
