// Which kernels run an instruction: nests are printed as they are, and the operators that are none have a row each.
#include "codegen/clike/launch.h"

#include <fmt/format.h>

#include "codegen/clike/kernel_writer.h"
#include "codegen/clike/tile_plan.h"
#include "codegen/nest/build.h"
#include "ops/all_ops.h"

namespace aglow::codegen {

namespace {

struct KernelRow {
  Op op;
  const char* name;
  bool epilogue = false;  // hands each element of its first result on
  MakeLaunches* make = nullptr;
  bool checks = false;  // indices, even where there is nothing to compute
  ScratchBytes* scratch = nullptr;
  TakesUse* takes = nullptr;  // which uses; none: all of them
  bool ways = false;          // tiles of several sizes
};

// Operators that one generator serves.
constexpr KernelRow products(Op op) {
  return {.op = op, .name = "tiles", .epilogue = true, .make = matMulLaunches, .scratch = matMulScratch, .ways = true};
}
constexpr KernelRow images(Op op) {
  return {.op = op, .name = "tiles", .epilogue = true, .make = convLaunches, .scratch = convScratch, .ways = true};
}
constexpr KernelRow recurrent(Op op) {
  return {.op = op,
          .name = "whole",
          .make = recurrentLaunches,
          .scratch = recurrentScratch,
          .takes = takesRecurrent,
          .ways = true};
}
constexpr KernelRow pools(Op op) { return {.op = op, .name = "window", .epilogue = true, .make = poolLaunches}; }
constexpr KernelRow moves(Op op) { return {.op = op, .name = "move", .make = moveLaunches}; }

constexpr KernelRow kRows[] = {
    products(Op::MatMul),
    products(Op::TransposedMatMul),
    products(Op::ByteMatMul),
    images(Op::Conv),
    images(Op::ByteConv),
    {.op = Op::ChannelsLastConv,
     .name = "tiles",
     .epilogue = true,
     .make = channelsLastLaunches,
     .scratch = channelsLastScratch,
     .takes = takesChannelsLast,
     .ways = true},
    {.op = Op::WinogradConv,
     .name = "winograd",
     .epilogue = true,
     .make = winogradLaunches,
     .scratch = winogradScratch,
     .takes = takesWinograd,
     .ways = true},
    {.op = Op::Attention,
     .name = "blocks",
     .epilogue = true,
     .make = attentionLaunches,
     .scratch = attentionScratch,
     .takes = takesAttention},
    recurrent(Op::RNN),
    recurrent(Op::GRU),
    recurrent(Op::LSTM),
    pools(Op::MaxPool),
    pools(Op::MaxPoolWithIndices),
    pools(Op::AvgPool),
    {.op = Op::Reduce, .name = "axes", .epilogue = true, .make = reduceLaunches, .scratch = reduceScratch},
    {.op = Op::ArgReduce, .name = "line", .epilogue = true, .make = argReduceLaunches, .scratch = argReduceScratch},
    {.op = Op::Scan, .name = "line", .make = scanLaunches},
    {.op = Op::TopK, .name = "rank", .make = topKLaunches, .scratch = topKScratch},
    {.op = Op::Gather, .name = "gather", .make = gatherLaunches, .checks = true},
    {.op = Op::Scatter, .name = "scatter", .make = scatterLaunches, .checks = true, .scratch = scatterScratch},
    {.op = Op::Observe, .name = "observe", .make = observeLaunches, .scratch = observeScratch},
    moves(Op::Transpose),
    moves(Op::Slice),
    moves(Op::Concat),
    moves(Op::Pad),
};

const KernelRow* rowOf(const OpDef& def) {
  for (const KernelRow& row : kRows)
    if (row.op == opOf(def)) return &row;
  return nullptr;
}

}  // namespace

Decision hasKernel(const Attrs& attrs, const OperandTypes& types, const DeviceShape& shape) {
  const OpDef& op = attrs.op();
  if (op.isDataParallel()) return Decision::yes();
  const KernelRow* row = rowOf(op);
  if (row == nullptr) return Decision::no(fmt::format("{} has no kernel for devices", op.name));
  return row->takes == nullptr ? Decision::yes() : row->takes(attrs, types, shape);
}

bool takesEpilogue(const OpDef& op) {
  const KernelRow* row = rowOf(op);
  return row != nullptr && row->epilogue;
}

bool hasWays(const OpDef& op) {
  const KernelRow* row = rowOf(op);
  return row != nullptr && row->ways;
}

bool isPart(const Attrs& attrs) { return wholeOf(attrs, 0) > 0; }

std::string kernelName(const Program& program, const Instr& instr) {
  if (nest::isNest(program, instr)) return Plan::kLoops;
  const KernelRow* row = rowOf(bodyOf(instr).front().attrs.op());
  return row == nullptr ? "" : row->name;
}

int64_t scratchBytes(const Program& program, const Instr& instr, const DeviceShape& shape) {
  if (nest::isNest(program, instr)) return nestScratch(program, instr, shape);
  const Instr& anchor = bodyOf(instr).front();
  const KernelRow* row = rowOf(anchor.attrs.op());
  return row == nullptr || row->scratch == nullptr ? 0 : row->scratch(program, anchor, shape);
}

std::vector<Launch> launchesOf(const Program& program, const Instr& instr, const DeviceShape& shape) {
  if (instr.kind == Instr::Kind::Copy || instr.kind == Instr::Kind::CopyStart)
    return copyLaunches(program, instr, shape);
  if (nest::isNest(program, instr)) {
    const nest::Nest nest = nest::nestOf(program, instr);
    return nestLaunches(program, instr, {&nest, 1}, shape);
  }
  const Instr& anchor = bodyOf(instr).front();
  const KernelRow* row = rowOf(anchor.attrs.op());
  AGLOW_CHECK(row != nullptr, "an instruction without a kernel");
  if (program[anchor.results()[0].region].type.elements() == 0 && !row->checks) return {};
  std::vector<Launch> launches = row->make(program, instr, shape);
  std::erase_if(launches, [](const Launch& launch) { return launch.items[0] == 0 || launch.items[1] == 0; });
  return launches;
}

}  // namespace aglow::codegen
