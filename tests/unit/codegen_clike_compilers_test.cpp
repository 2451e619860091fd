// Compilers take what the printer makes of every core operator: that of CUDA, where there is one, and clang as of a
// device without f64.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "backends/device/fuse_policy.h"
#include "backends/device/kernel_texts.h"
#include "backends/winograd.h"
#include "codegen/clike/launch.h"
#include "fuse/fuse.h"
#include "graph/builder.h"
#include "inst/fused.h"
#include "inst/irgen.h"
#include "ops/all_ops.h"
#include "random_graph.h"

namespace aglow {

namespace {

constexpr codegen::DeviceShape kShape{
    .sharesLocal = true, .groupItems = 1024, .localBytes = 48 << 10, .computeUnits = 132};

std::string firstOf(std::initializer_list<const char*> paths) {
  for (const char* path : paths)
    if (std::filesystem::exists(path)) return path;
  return {};
}

// The kernels of a function, fused as devices have them.
void addKernels(const Function& function, const codegen::DeviceShape& shape, device::KernelTexts& kernels) {
  Result<Program> made = generate(function);
  ASSERT_TRUE(made.ok()) << made.error().text();
  Program program = *std::move(made);
  const device::DeviceFusePolicy policy(shape);
  ASSERT_TRUE(fuseInstructions(program, policy).ok());
  for (size_t i = 0; i < program.instrs.size(); ++i) {
    if (!program.instrs[i].computes()) continue;
    if (scratchBytes(program, program.instrs[i], shape) > 0) {
      const RegionId scratch = program.add(
          {.name = fmt::format("scratch_{}", i), .type = Type(ElemKind::UInt8, Shape{1}), .source = Allocated{}});
      program.instrs[i].operands.push_back({scratch, Access::Scratch});
    }
    for (const codegen::Launch& launch : launchesOf(program, program.instrs[i], shape)) kernels.add(launch.text);
  }
}

void addOperators(const codegen::DeviceShape& shape, device::KernelTexts& kernels) {
  for (const OpDef* op : allOps()) {
    if (op->kind != OpKind::Elementwise && op->kind != OpKind::Core) continue;
    Module module;
    RandomGraph random(module, 7, {.maxElements = 600, .predicates = 0});
    Function* function = module.addFunction("f");
    for (int use = 0; use < 2; ++use) {
      Node* node = random.addNode(*function, *op);
      ASSERT_NE(node, nullptr) << op->name;
      for (int r = 0; r < node->resultCount(); ++r)
        Builder(*function).output(fmt::format("{}_{}_{}", op->name, use, r), Value(node, r));
    }
    addKernels(*function, shape, kernels);
  }
}

// Tiles of several kinds, attention, recurrent layers, Winograd's transforms.
void addLarge(const codegen::DeviceShape& shape, device::KernelTexts& kernels) {
  const auto with = [&](auto&& make) {
    Module module;
    Builder b(*module.addFunction("f"));
    make(b);
    addKernels(b.function(), shape, kernels);
  };
  const auto input = [](Builder& b, const char* name, Shape shape, ElemKind kind = ElemKind::Float32) {
    return b.input(name, Type(kind, std::move(shape)));
  };
  for (const ElemKind kind : {ElemKind::Float32, ElemKind::Float16, ElemKind::Float64, ElemKind::Int32})
    for (const int64_t n : {72, 73})
      with([&](Builder& b) {
        b.output("y", b.abs(b.matMul(input(b, "x", {2, 20, 700}, kind), input(b, "w", {700, n}, kind))));
      });
  for (const ElemKind kind : {ElemKind::Float32, ElemKind::Float16})
    with([&](Builder& b) {
      const Value x = input(b, "x", {2, 16, 9, 8}, kind);
      b.output("y", b.relu(b.conv(x, input(b, "w", {24, 16, 3, 3}, kind), input(b, "s", {24}, kind), {})));
      b.output("z", b.conv(x, input(b, "v", {24, 16, 1, 1}, kind), {}, {}));
    });
  with([&](Builder& b) {
    const Value q = input(b, "q", {1, 2, 40, 16});
    b.output("y", b.attention(q, q, q, {}, {.scale = 1, .right = 0, .precision = ElemKind::Float32})->result(0));
  });
  for (const int64_t hidden : {20, 700})
    with([&](Builder& b) {
      const auto weights = [&](const char* name, int64_t rows) { return input(b, name, {1, rows * hidden, hidden}); };
      const Value x = input(b, "x", {3, 2, hidden});
      b.output("l", b.lstm(x, weights("lw", 4), weights("lr", 4), {}, {}, {}, {}, {}, {})->result(0));
      b.output("g", b.gru(x, weights("gw", 3), weights("gr", 3), {}, {}, {}, {})->result(0));
      b.output("r", b.rnn(x, weights("rw", 1), weights("rr", 1), {}, {}, {}, {})->result(0));
    });
  with([&](Builder& b) {
    const Value q = input(b, "q", {1, 1, 4, 512}), k = input(b, "k", {1, 1, 900, 512});
    Node* node = b.attention(q, k, k, {}, {.scale = 1, .precision = ElemKind::Float32});
    EXPECT_TRUE(codegen::hasKernel(node->attrs(), OperandTypes(*node), shape));
    b.output("y", node->result(0));
  });
  with([&](Builder& b) {
    b.output("y", b.byteMatMul(input(b, "x", {2, 20, 700}, ElemKind::UInt8), input(b, "w", {72, 700}, ElemKind::Int8),
                               {.aOffset = 3, .transposed = true}));
  });
  with([&](Builder& b) {
    const Tensor filter(Type(ElemKind::Float32, Shape{32, 32, 3, 3}));
    b.output("y", b.winogradConv(input(b, "x", {1, 32, 9, 9}), b.constant(winogradFilter(filter, 4, 32)),
                                 {.tile = 4, .pads = {1, 1, 1, 1}, .outputs = 32}));
  });
}

// The compiler's words where it refuses them all together; `command` has the file's name without its ending as {0}.
void expectTaken(const codegen::DeviceShape& shape, const std::string& prelude, const char* ending,
                 const std::string& command) {
  device::KernelTexts kernels;
  addOperators(shape, kernels);
  addLarge(shape, kernels);
  const std::string base = testing::TempDir() + "aglow_kernels";
  std::ofstream(base + ending) << kernels.source(prelude);
  const int code = std::system(fmt::format("{} > {}.log 2>&1", fmt::format(fmt::runtime(command), base), base).c_str());
  std::ifstream log(base + ".log");
  std::string words(4000, '\0');
  log.read(words.data(), static_cast<std::streamsize>(words.size()));
  EXPECT_EQ(code, 0) << words;
  EXPECT_GT(kernels.count(), 50u);
  for (const char* each : {ending, ".out", ".log"}) std::filesystem::remove(base + each);
}

// Drivers may refuse kernels with more bytes of arguments than their device tells.
TEST(Kernels, HaveNoMoreArgumentsThanTheDeviceTakes) {
  Module module;
  Builder b(*module.addFunction("f"));
  Value sum;
  for (int i = 0; i < 80; ++i) {
    const Value one = b.input(fmt::format("x{}", i), Type(ElemKind::Float32, Shape{4, 8}));
    sum = i == 0 ? one : b.add(sum, one);
  }
  b.output("y", sum);
  const auto mostArguments = [&](const codegen::DeviceShape& shape) {
    Program program = *generate(b.function());
    EXPECT_TRUE(fuseInstructions(program, device::DeviceFusePolicy(shape)).ok());
    size_t most = 0;
    for (const Instr& instr : program.instrs)
      if (instr.computes())
        for (const codegen::Launch& launch : launchesOf(program, instr, shape))
          most = std::max(most, launch.arguments.size());
    return most;
  };
  codegen::DeviceShape shape = kShape;
  shape.argumentBytes = 4352;
  EXPECT_EQ(mostArguments(shape), 66u);
  shape.argumentBytes = 1024;
  EXPECT_EQ(mostArguments(shape), 61u);
  shape.argumentBytes = 256;
  EXPECT_EQ(mostArguments(shape), 13u);
}

TEST(Cuda, TakesTheKernelsOfAllCoreOperators) {
  const std::string compiler = firstOf({"/usr/local/cuda/bin/nvcc", "/usr/bin/nvcc"});
  if (compiler.empty()) GTEST_SKIP() << "the compiler of CUDA is not installed";
  codegen::DeviceShape shape = kShape;
  shape.vectors = false;
  expectTaken(shape, codegen::cudaPrelude(), ".cu",
              compiler + " --ptx -arch=compute_80 -fmad=false -w -o {0}.out {0}.cu");
}

// Not one f64 is left: clang refuses them all without the extension.
TEST(Pairs, NeedNoF64) {
  const std::string compiler = firstOf({"/usr/bin/clang-19", "/usr/bin/clang"});
  if (compiler.empty()) GTEST_SKIP() << "clang is not installed";
  codegen::DeviceShape shape = kShape;
  shape.pairs = true;
  expectTaken(shape, codegen::openClPrelude(), ".cl",
              compiler +
                  " -x cl -cl-std=CL1.2 -Xclang -cl-ext=-cl_khr_fp64 -Xclang -finclude-default-header -w "
                  "-fsyntax-only -DPAIRS {0}.cl");
}

}  // namespace

}  // namespace aglow
